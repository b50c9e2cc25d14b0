/** One row over a text: the label and its probability, the words that decided highlighted, the top words listed. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lengthOf } from "../data";
import { profile, shades } from "../focus";
import { runsLeft } from "../geometry";
import { loadMatrix, type Matrix } from "../matrix";
import { aligned, unitAt, written } from "../reading";
import { visible, type Unit } from "../units";
import { Outcomes } from "./outcomes";
import { Agreement, reasonsOf } from "./reasons";
import type { Scene } from "./view";

const TOP = 25;

/** The label with its probability, in one line. */
export function verdictOf({ item, matrix }: Scene): string {
  const first = item.outcomes[0];
  if (!first) return visible(matrix.rows.list[0]?.label ?? "");
  return first.probability === null ? first.label : `${first.label} ${first.probability.toFixed(3)}`;
}

/** Weights of the sentences, from another map of one row whose columns are the sentences of this text. */
function useSentences({ data, item, map, cols, choice }: Scene): Matrix | null {
  const count = cols.kind === "text" ? (cols.sentences?.length ?? 0) : 0;
  const found = item.maps.find(
    (each) =>
      each !== map && lengthOf(data.axes[each.rows]!) === 1 && lengthOf(data.axes[each.cols]!) === count && count > 1,
  );
  const [loaded, setLoaded] = useState<{ map: unknown; matrix: Matrix } | null>(null);
  useEffect(() => {
    let wanted = true;
    const head = typeof choice.head === "number" && found && choice.head >= found.heads ? "mean" : choice.head;
    if (found) void loadMatrix(data, found, head, "pieces", true).then((matrix) => wanted && setLoaded({ map: found, matrix }));
    return () => {
      wanted = false;
    };
  }, [data, found, choice.head]);
  // While another head is loading, the last one stays: the text does not jump.
  return found && loaded?.map === found ? loaded.matrix : null;
}

/** Runs of units that belong to one sentence; a unit outside every sentence continues the run before it. */
function paragraphs(units: readonly Unit[], sentences: readonly (readonly number[])[]): { sentence: number; from: number; to: number }[] {
  const sentenceOf = new Map(sentences.flatMap((pieces, sentence) => pieces.map((piece) => [piece, sentence] as const)));
  const runs: { sentence: number; from: number; to: number }[] = [];
  units.forEach((unit, place) => {
    const last = runs.at(-1);
    const own = unit.pieces.map((piece) => sentenceOf.get(piece)).find((each) => each !== undefined);
    const sentence = own ?? last?.sentence ?? -1;
    if (last?.sentence === sentence) last.to = place + 1;
    else runs.push({ sentence, from: place, to: place + 1 });
  });
  return runs;
}

export function Document(scene: Scene) {
  const { matrix, state, update, colours, cols, map } = scene;
  const units = matrix.cols.list;
  const weights = profile(matrix, { side: "query", unit: 0 });
  const steps = useMemo(() => shades(matrix, weights, state), [matrix, state.scale, state.threshold]);
  const sentences = useSentences(scene);
  const reasons = useMemo(() => reasonsOf(units, map, cols), [units, map, cols]);
  const order = useMemo(
    () => Array.from(units, (_, place) => place).sort((a, b) => weights[b]! - weights[a]!),
    [matrix],
  );
  const box = useRef<HTMLDivElement>(null);
  const here = state.cursor ? unitAt(matrix.cols, state.cursor.key) : -1;
  const pinned = state.pin?.side === "key" ? unitAt(matrix.cols, state.pin.piece) : -1;
  const query = matrix.rows.list[0]?.pieces[0] ?? 0;
  const unitOf = (event: MouseEvent): number => {
    const found = event.target instanceof Element ? event.target.closest("[data-unit]") : null;
    return found ? Number(found.getAttribute("data-unit")) : -1;
  };
  const point = (event: MouseEvent): void => {
    const unit = unitOf(event);
    if (unit >= 0 && unit !== here) update({ cursor: { query, key: units[unit]!.pieces[0]! } });
  };
  const press = (event: MouseEvent): void => {
    const unit = unitOf(event);
    if (unit >= 0) update({ pin: unit === pinned ? null : { side: "key", piece: units[unit]!.pieces[0]! } });
  };
  useEffect(() => {
    if (pinned >= 0) box.current?.querySelector(`[data-unit="${pinned}"]`)?.scrollIntoView({ block: "nearest" });
  }, [pinned]);
  const word = (unit: Unit, place: number, starts = place === 0) => (
    <>
      {starts ? "" : state.level === "pieces" ? " " : unit.before || <wbr />}
      <bdi
        data-unit={place}
        class="mark"
        data-focus={here === place}
        data-pinned={pinned === place}
        data-special={unit.special}
        data-picked={reasons.picked?.[place]}
        data-gold={reasons.gold?.[place]}
        title={written(weights[place]!)}
        style={steps[place]! > 4 ? { background: colours.css[steps[place]!], color: colours.ink[steps[place]!] } : {}}
      >
        {visible(unit.label)}
      </bdi>
    </>
  );
  const direction = runsLeft(units) ? "rtl" : "ltr";
  const largest = weights[order[0] ?? 0] ?? 0;
  return (
    <div
      class={scene.width < 700 ? "frame document narrow" : "frame document"}
      tabIndex={0}
      role="application"
      aria-roledescription="highlighted document"
      aria-label={`Text of ${map.name}, highlighted by weight. Left and right move, Shift and Enter pin.`}
    >
      <Outcomes outcomes={scene.item.outcomes} otherwise={visible(matrix.rows.list[0]?.label ?? "")} />
      <p class="faint share">
        {units.length > 0 && !reasons.picked && (
          <>
            Largest weight {written(largest)}, on <bdi>{visible(units[order[0]!]!.label)}</bdi>:{" "}
            <b>{(largest * units.length).toFixed(1)} ×</b> an even share among {units.length.toLocaleString("en")}.
          </>
        )}
        <Agreement reasons={reasons} weights={weights} units={units} />
      </p>
      <div class="reader" ref={box} onMouseOver={point} onClick={press}>
        {sentences && cols.kind === "text" ? (
          <div class={`text ${state.level}`} dir={direction} data-side="key">
            {paragraphs(units, cols.sentences ?? []).map(({ sentence, from, to }) => {
              const weight = sentence < 0 ? 0 : (sentences.values[sentence] ?? 0);
              return (
                <div class="sentence">
                  <span class="weight" title={sentence < 0 ? undefined : `Sentence ${sentence + 1}: ${written(weight)}`}>
                    <span class="meter" aria-hidden="true">
                      <span style={{ width: `${(100 * weight) / (sentences.largest || 1)}%` }} />
                    </span>
                    <span class="number">{sentence < 0 ? "" : weight.toFixed(3)}</span>
                  </span>
                  <p>{units.slice(from, to).map((unit, place) => word(unit, from + place, place === 0))}</p>
                </div>
              );
            })}
          </div>
        ) : (
          <p class={`text ${state.level}`} dir={direction} data-side="key">
            {units.map((unit, place) => word(unit, place))}
          </p>
        )}
      </div>
      <section class="top" aria-label="Top words" onMouseOver={point} onClick={press}>
        <h3>Largest weights</h3>
        <ol>
          {order.slice(0, TOP).map((place) => (
            <li data-unit={place} data-focus={here === place} data-pinned={pinned === place}>
              <bdi>{visible(units[place]!.label)}</bdi>
              <span class="meter" aria-hidden="true">
                <span style={{ width: `${largest > 0 ? (100 * weights[place]!) / largest : 0}%` }} />
              </span>
              <span class="number">{aligned(weights[place]!)}</span>
            </li>
          ))}
        </ol>
        {order.length > TOP && <p class="faint">and {(order.length - TOP).toLocaleString("en")} more</p>}
      </section>
    </div>
  );
}
