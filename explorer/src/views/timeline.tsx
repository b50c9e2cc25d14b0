/** Visits on a timeline, with what each code adds to an outcome; codes can be removed. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { codesOf, keyOf, probabilities, type Code } from "../contributions";
import type { Contributions, VisitAxis } from "../data";
import { FONT, shortened } from "../geometry";
import { at, type Matrix } from "../matrix";
import { written } from "../reading";
import { visible } from "../units";
import { Outcomes } from "./outcomes";
import { registerView, type Scene } from "./view";

const FOR = "#c2410c";
const AGAINST = "#1d6fa5";
const TRACK = 46;
const EDGE = 24;
const MOST_DRAWN = 30;

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

function percent(probability: number): string {
  return `${(100 * probability).toFixed(1)} %`;
}

/** Where each visit stands, from 0 to 1: by its time if that is known. */
function placesOf(axis: VisitAxis): readonly number[] {
  const count = axis.names.length;
  const first = axis.days?.[0] ?? 0;
  const span = (axis.days?.[count - 1] ?? 0) - first;
  if (axis.days && span > 0) return axis.days.map((day) => (day - first) / span);
  return axis.names.map((_, place) => (count > 1 ? place / (count - 1) : 0.5));
}

interface TrackProps {
  scene: Scene;
  axis: VisitAxis;
  row: number;
  matrix: Matrix;
  width: number;
  over: number | null;
  point?: (visit: number | null) => void;
}

/** A circle for each visit, as large as its weight. */
function Track({ scene, axis, row, matrix, width, over, point }: TrackProps) {
  const { ink } = scene;
  const places = placesOf(axis);
  const x = (visit: number): number => EDGE + places[visit]! * Math.max(width - 2 * EDGE, 10);
  const last = axis.names.length - 1;
  return (
    <svg xmlns="http://www.w3.org/2000/svg" class="track" width={width} height={TRACK} font-family={FONT} font-size={11}>
      <line x1={EDGE} x2={width - EDGE} y1={18} y2={18} stroke={ink.line} stroke-width={2} />
      {axis.names.map((name, visit) => {
        const weight = at(matrix, row, visit);
        return (
          <circle
            class="visit-dot"
            data-visit={visit}
            cx={x(visit)}
            cy={18}
            r={3 + 11 * Math.sqrt(weight)}
            fill={over === visit ? ink.accent : ink.text}
            fill-opacity={over === visit ? 1 : 0.25 + 0.6 * weight}
            onMouseEnter={() => point?.(visit)}
            onMouseLeave={() => point?.(null)}
          >
            <title>{`${visible(name)}: weight ${written(weight)}`}</title>
          </circle>
        );
      })}
      {[0, ...(last > 0 ? [last] : [])].map((visit) => (
        <text
          x={visit === 0 && last > 0 ? 4 : visit === 0 ? width / 2 : width - 4}
          y={TRACK - 4}
          text-anchor={last === 0 ? "middle" : visit === 0 ? "start" : "end"}
          fill={ink.faint}
        >
          {shortened(visible(axis.names[visit]!), width / 2 - 8, 11)}
        </text>
      ))}
    </svg>
  );
}

interface RowProps {
  code: Code;
  outcome: number;
  largest: number;
  gone: boolean;
  toggle: (code: Code) => void;
}

/** A code with its bar: to the right if it speaks for the outcome. */
function CodeRow({ code, outcome, largest, gone, toggle }: RowProps) {
  const value = code.adds[outcome]!;
  const share = largest > 0 ? (50 * Math.abs(value)) / largest : 0;
  const what = value === 0 ? "says nothing" : value > 0 ? "speaks for it" : "speaks against it";
  return (
    <li data-gone={gone}>
      <button
        aria-pressed={gone}
        title={gone ? "Put it back" : `${visible(code.name)} ${what} (${signed(value)}). Click to remove it.`}
        data-code={keyOf(code)}
        onClick={() => toggle(code)}
      >
        <bdi>{visible(code.name)}</bdi>
        <span class="balance" aria-hidden="true">
          <span
            class={value < 0 ? "against" : "for"}
            style={value < 0 ? { right: "50%", width: `${share}%` } : { left: "50%", width: `${share}%` }}
          />
        </span>
        <span class="number">{signed(value)}</span>
      </button>
    </li>
  );
}

function gapOf(axis: VisitAxis, visit: number): string {
  if (!axis.days || visit === 0) return "";
  const days = axis.days[visit]! - axis.days[visit - 1]!;
  const shown = days < 60 ? `${Math.round(10 * days) / 10} days` : days < 730 ? `${(days / 30.44).toFixed(1)} months` : `${(days / 365.25).toFixed(1)} years`;
  return `${shown} later`;
}

interface AnswerProps {
  added: Contributions;
  codes: readonly Code[];
  removed: ReadonlySet<string>;
  outcome: number;
  choose: (outcome: number) => void;
  restore: () => void;
}

/** The probability of an outcome, and what it would be without the codes that were removed. */
function Answered({ added, codes, removed, outcome, choose, restore }: AnswerProps) {
  const before = probabilities(added, codes, new Set())[outcome]!;
  const after = probabilities(added, codes, removed)[outcome]!;
  return (
    <div class="answered">
      <h2 class="verdict">
        {added.outcomes.length > 1 ? (
          <select aria-label="Outcome" value={String(outcome)} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {added.outcomes.map((name, number) => (
              <option value={number}>{visible(name)}</option>
            ))}
          </select>
        ) : (
          <bdi>{visible(added.outcomes[0]!)}</bdi>
        )}
        <span class="number before">{percent(before)}</span>
        {removed.size > 0 && (
          <>
            <span aria-hidden="true">→</span>
            <span class="number after">{percent(after)}</span>
            <button class="restore" onClick={restore}>
              Restore {removed.size === 1 ? "the code" : `${removed.size} codes`}
            </button>
          </>
        )}
      </h2>
      <p class="faint">
        {removed.size > 0
          ? "Without the removed codes, assuming that the attention to the others stays the same."
          : "Bars to the right count for it, bars to the left against it. Click a code to remove it."}{" "}
        Without any code: {signed(added.bias[outcome]!)}.
      </p>
    </div>
  );
}

function Timeline(scene: Scene) {
  const { matrix, map, item, width, cols } = scene;
  const axis = cols as VisitAxis;
  const several = map.contributions;
  const [row, setRow] = useState(matrix.rows.list.length - 1);
  const shownRow = Math.min(row, matrix.rows.list.length - 1);
  const added = several?.[shownRow] ?? null;
  const usual = Math.max(added?.outcomes.indexOf(item.outcomes[0]?.label ?? "") ?? 0, 0);
  const [chosen, setChosen] = useState<number | null>(null);
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const [over, setOver] = useState<number | null>(null);
  useEffect(() => {
    setRow(matrix.rows.list.length - 1);
    setChosen(null);
    setRemoved(new Set());
  }, [map]);
  const codes = useMemo(() => (added ? codesOf(axis, added) : []), [axis, added]);
  const outcome = Math.min(chosen ?? usual, (added?.outcomes.length ?? 1) - 1);
  const largest = codes.reduce((most, code) => Math.max(most, Math.abs(code.adds[outcome]!)), 0);
  const toggle = (code: Code): void => {
    const next = new Set(removed);
    if (!next.delete(keyOf(code))) next.add(keyOf(code));
    setRemoved(next);
  };
  const apart = matrix.rows.list.length > 1 && scene.rows.kind === "visits";
  const last = apart ? shownRow : axis.names.length - 1;
  const listed = (visit: number): readonly Code[] =>
    codes.filter((code) => code.visit === visit).sort((a, b) => Math.abs(b.adds[outcome]!) - Math.abs(a.adds[outcome]!));
  const rows = (visit: number, names: readonly string[]) =>
    added ? (
      <ul>
        {listed(visit).map((code) => (
          <CodeRow {...{ code, outcome, largest, toggle }} gone={removed.has(keyOf(code))} />
        ))}
      </ul>
    ) : (
      <p>{names.map(visible).join(", ")}</p>
    );
  const sum = (visit: number): number =>
    codes.reduce((total, code) => total + (code.visit === visit && !removed.has(keyOf(code)) ? code.adds[outcome]! : 0), 0);
  return (
    <div class="frame timeline" tabIndex={0} role="application" aria-roledescription="timeline" aria-label={`${last + 1} visits`}>
      {added ? (
        <Answered {...{ added, codes, removed, outcome }} choose={setChosen} restore={() => setRemoved(new Set())} />
      ) : (
        <Outcomes outcomes={item.outcomes} otherwise="" />
      )}
      {apart && (
        <label class="at-visit">
          Answer at{" "}
          <select aria-label="Visit" value={String(shownRow)} onChange={(event) => setRow(Number(event.currentTarget.value))}>
            {axis.names.map((name, visit) => (
              <option value={visit}>{visible(name)}</option>
            ))}
          </select>
        </label>
      )}
      <Track {...{ scene, axis, matrix, over }} row={shownRow} width={Math.max(width - 40, 120)} point={setOver} />
      <div class="visits">
        {axis.static.length > 0 && (
          <section class="visit" data-visit="-1">
            <h3>
              Patient <span class="faint">{added ? signed(sum(-1)) : ""}</span>
            </h3>
            {rows(-1, axis.static)}
          </section>
        )}
        {axis.names.slice(0, last + 1).map((name, visit) => (
          <section
            class="visit"
            data-visit={visit}
            data-focus={over === visit}
            onMouseEnter={() => setOver(visit)}
            onMouseLeave={() => setOver(null)}
          >
            <h3>
              <bdi>{visible(name)}</bdi> <span class="faint">{gapOf(axis, visit)}</span>
              <span class="weight" title="Attention to the visit">
                {written(at(matrix, shownRow, visit))}
              </span>
              {added && <span class="number">{signed(sum(visit))}</span>}
            </h3>
            {axis.codes[visit]!.length > 0 ? rows(visit, axis.codes[visit]!) : <p class="faint">no codes</p>}
          </section>
        ))}
      </div>
    </div>
  );
}

/** The timeline, and the codes that count most, as a picture. */
function draw(scene: Scene) {
  const { matrix, map, item, ink, cols } = scene;
  const axis = cols as VisitAxis;
  const row = matrix.rows.list.length - 1;
  const added = map.contributions?.[row] ?? null;
  const outcome = Math.max(added?.outcomes.indexOf(item.outcomes[0]?.label ?? "") ?? 0, 0);
  const codes = added ? codesOf(axis, added) : [];
  const shown = [...codes].sort((a, b) => Math.abs(b.adds[outcome]!) - Math.abs(a.adds[outcome]!)).slice(0, MOST_DRAWN);
  const largest = Math.abs(shown[0]?.adds[outcome] ?? 0) || 1;
  const [width, line, middle] = [860, 20, 520];
  const height = TRACK + 40 + shown.length * line;
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width} height={height} viewBox={`0 0 ${width} ${height}`} font-family={FONT} font-size={12}>
      <rect width={width} height={height} fill={ink.ground} />
      <Track {...{ scene, axis, matrix, row, width }} over={null} />
      {added && (
        <text x={12} y={TRACK + 18} fill={ink.text} font-weight={650}>
          {visible(added.outcomes[outcome]!)} {percent(probabilities(added, codes, new Set())[outcome]!)}
        </text>
      )}
      {shown.map((code, number) => {
        const value = code.adds[outcome]!;
        const wide = (240 * Math.abs(value)) / largest;
        const y = TRACK + 30 + number * line;
        return (
          <g>
            <text x={12} y={y + 13} fill={ink.text}>
              {shortened(`${code.visit < 0 ? "patient" : visible(axis.names[code.visit]!)} · ${visible(code.name)}`, 250, 12)}
            </text>
            <rect x={value < 0 ? middle - wide : middle} y={y + 3} width={wide} height={line - 7} fill={value < 0 ? AGAINST : FOR} />
            <text x={width - 12} y={y + 13} text-anchor="end" fill={ink.text}>
              {signed(value)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

registerView({
  name: "visits",
  title: "Timeline",
  hint: "The visits of a patient, and how each code counts for or against the outcome.",
  accepts: (_rows, cols) => cols.kind === "visits",
  Component: Timeline,
  draw,
});
