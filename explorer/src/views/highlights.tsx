/** The texts themselves, highlighted by weight. A recording stands as its spectrogram. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import { lengthOf, type SoundAxis } from "../data";
import { profile, shades, unitsOn, useFocus, type Focus, type Focusing } from "../focus";
import { FONT, runsLeft, textWidth } from "../geometry";
import { written } from "../reading";
import { capital, sideNames } from "../sides";
import { inked, loadSpectrogram, paintStrip, paintTimes, Player, spotlight, TIMES, useSpectrogram } from "../sound";
import type { Side } from "../state";
import { visible, type Unit, type Units } from "../units";
import { Document, verdictOf } from "./document";
import { PEOPLE, reasonsOf } from "./reasons";
import { MOST_LISTED, registerView, type Scene } from "./view";

/** The input above the output, as people read. */
const SIDES = ["key", "query"] as const;

interface Marks {
  readonly side: Side;
  readonly weights: Float32Array;
  readonly steps: Uint8Array;
}

interface SideProps {
  scene: Scene;
  side: Side;
  units: Units;
  focusing: Focusing;
  /** Weights and palette steps of this side's tokens, if it is the highlighted side. */
  marks: Marks | null;
}

function Text({ scene, side, units, focusing, marks }: SideProps) {
  const { colours, state } = scene;
  const unitOf = (event: MouseEvent): Focus | null => {
    const found = event.target instanceof Element ? event.target.closest("[data-unit]") : null;
    return found ? { side, unit: Number(found.getAttribute("data-unit")) } : null;
  };
  const paragraph = useRef<HTMLParagraphElement>(null);
  // Bring the strongest mark of a long text into sight.
  useEffect(() => {
    const card = paragraph.current?.parentElement;
    if (!card || !marks || card.scrollHeight <= card.clientHeight) return;
    const strongest = marks.steps.indexOf(Math.max(...marks.steps));
    const mark = paragraph.current!.querySelector<HTMLElement>(`[data-unit="${strongest}"]`);
    const y = mark ? mark.offsetTop : 0;
    if (y < card.scrollTop || y > card.scrollTop + card.clientHeight - 40) card.scrollTop = y - card.clientHeight / 2;
  }, [marks]);
  return (
    <p
      ref={paragraph}
      class={`text ${state.level}`}
      dir={runsLeft(units.list) ? "rtl" : "ltr"}
      data-side={side}
      onMouseOver={(event) => {
        const to = unitOf(event);
        if (to) focusing.point(to);
      }}
      onMouseLeave={() => focusing.point(null)}
      onClick={(event) => {
        const to = unitOf(event);
        if (to) focusing.press(to);
      }}
    >
      {units.list.map((unit, place) => {
        const step = marks?.steps[place] ?? 0;
        const { focus, pinned } = focusing;
        return (
          <>
            {state.level === "pieces" ? " " : unit.before || <wbr />}
            <bdi
              data-unit={place}
              class="mark"
              data-focus={focus?.side === side && focus.unit === place}
              data-pinned={pinned?.side === side && pinned.unit === place}
              data-special={unit.special}
              data-origin={unit.origin || undefined}
              title={[unit.origin, marks && written(marks.weights[place]!)].filter(Boolean).join(" · ") || undefined}
              aria-label={/^ +$/u.test(unit.label) ? "space" : undefined}
              style={step > 4 ? { background: colours.css[step], color: colours.ink[step] } : {}}
            >
              {/^ +$/u.test(unit.label) ? "\u00a0" : visible(unit.label)}
            </bdi>
          </>
        );
      })}
    </p>
  );
}

const STRIP = 150;

/** The spectrogram; point at a frame to see what attends to it. */
function Recording({ scene, side, focusing, marks, axis }: SideProps & { axis: SoundAxis }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useSpectrogram(axis);
  const width = Math.max(scene.width - 46, 100);
  const { focus } = focusing;
  useEffect(() => {
    const target = canvas.current!;
    target.width = Math.round(width * devicePixelRatio);
    target.height = Math.round((STRIP + TIMES) * devicePixelRatio);
    const context = target.getContext("2d")!;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, TIMES * devicePixelRatio);
    paintTimes(context, axis, width, scene.ink);
    const shares = marks && focus ? spotlight(marks.weights) : null;
    if (picture) paintStrip(context, { axis, picture, ink: scene.ink, width, height: STRIP, shares });
    if (focus?.side !== side) return;
    context.strokeStyle = scene.ink.accent;
    context.lineWidth = 2;
    context.strokeRect((focus.unit * width) / axis.frames, 1, Math.max(width / axis.frames, 2), STRIP - 2);
  });
  const frameAt = (event: MouseEvent): Focus => {
    const box = canvas.current!.getBoundingClientRect();
    const frame = Math.floor(((event.clientX - box.left) / box.width) * axis.frames);
    return { side, unit: Math.min(Math.max(frame, 0), axis.frames - 1) };
  };
  return (
    <canvas
      ref={canvas}
      class="spectrogram"
      role="img"
      data-drawn={picture !== null}
      aria-label={`Spectrogram of ${axis.seconds.toFixed(2)} seconds`}
      style={{ width: `${width}px`, height: `${STRIP + TIMES}px` }}
      onMouseMove={(event) => focusing.point(frameAt(event))}
      onMouseLeave={() => focusing.point(null)}
      onClick={(event) => focusing.press(frameAt(event))}
    />
  );
}

/** The highlighted side, and its weights. */
function useMarks(scene: Scene, focus: Focus | null): Marks {
  const { matrix, state } = scene;
  return useMemo(() => {
    const weights = profile(matrix, focus);
    const steps = shades(matrix, weights, state);
    return { side: focus?.side === "key" ? ("query" as const) : ("key" as const), weights, steps };
  }, [matrix, focus?.side, focus?.unit, state.scale, state.threshold]);
}

function Highlights(scene: Scene) {
  if (lengthOf(scene.rows) === 1 && scene.cols.kind === "text") return <Document {...scene} />;
  return <Both {...scene} />;
}

function Both(scene: Scene) {
  const { matrix } = scene;
  const focusing = useFocus(scene);
  const marks = useMarks(scene, focusing.focus);
  const { focus } = focusing;
  const label = focus ? visible(unitsOn(matrix, focus.side).list[focus.unit]!.label) : "";
  const origin = focus?.side === "query" ? unitsOn(matrix, "query").list[focus.unit]!.origin : "";
  const names = sideNames(scene.map);
  const title = (side: Side) => (
    <>
      {capital(names[side])}
      {marks.side === side &&
        (focus ? (
          <>
            {side === "key" ? ": attention of " : ": attention to "}
            <bdi>{label}</bdi>
            {origin && `, ${origin}`}
          </>
        ) : (
          `: attention of the whole ${names.query}, on average`
        ))}
    </>
  );
  const axisOf = (side: Side) => (side === "key" ? scene.cols : scene.rows);
  return (
    <div
      class="frame highlights"
      tabIndex={0}
      role="application"
      aria-roledescription="highlighted text"
      aria-label={`Text of ${scene.map.name}, highlighted by weight. Up and down move through the ${names.query}, Enter pins.`}
    >
      {SIDES.map((side) => {
        const axis = axisOf(side);
        const given = { scene, side, units: unitsOn(matrix, side), focusing, marks: marks.side === side ? marks : null };
        const part = focus && focus.side !== side ? { weights: profile(matrix, focus), label } : null;
        return (
          <section class="card">
            <h3>{title(side)}</h3>
            {axis.kind === "sound" ? <Recording {...given} axis={axis} /> : <Text {...given} />}
            {axis.kind === "sound" && <Player axis={axis} part={part} />}
            {axis.kind === "text" && axis.origins?.some(Boolean) && (
              <p class="faint">Underlined words were not taken from the vocabulary: point at one to see where from.</p>
            )}
          </section>
        );
      })}
    </div>
  );
}

const WIDTH = 900;
const SIZE = 15;
const LINE = 30;

interface StillProps {
  scene: Scene;
  /** Spectrograms of the sides that are recordings. */
  pictures: Partial<Record<Side, HTMLCanvasElement>>;
}

/** The same as a drawing: tokens one after another, from the side where the text begins. */
function Still({ scene, pictures }: StillProps) {
  const { matrix, ink, colours } = scene;
  const alone = matrix.rows.list.length === 1;
  const found = useFocus(scene).focus;
  const focus = alone ? ({ side: "query", unit: 0 } as const) : found;
  const marks = useMarks(scene, focus);
  const names = sideNames(scene.map);
  const reasons = alone ? reasonsOf(matrix.cols.list, scene.map, scene.cols) : { picked: null, gold: null };
  let top = 20;
  const parts = (alone ? (["key"] as const) : SIDES).map((side) => {
    const units = unitsOn(matrix, side);
    const start = top;
    const title = alone ? verdictOf(scene) : capital(names[side]);
    const picture = pictures[side];
    const left = runsLeft(units.list);
    let x = 0;
    let y = top + 34;
    const token = (unit: Unit, place: number) => {
      const label = visible(unit.label);
      const wide = Math.min(textWidth(label, SIZE) + 10, WIDTH - 48);
      if (x > 0 && x + wide > WIDTH - 48) {
        x = 0;
        y += LINE;
      }
      const step = marks.side === side ? marks.steps[place]! : 0;
      const isFocus = focus?.side === side && focus.unit === place;
      const at = left ? WIDTH - 24 - x - wide : 24 + x;
      x += wide + (unit.before === "" ? -6 : 2);
      return (
        <>
          <rect
            x={at}
            y={y - 13}
            width={wide}
            height={26}
            rx={5}
            fill={step > 4 ? colours.css[step] : "none"}
            stroke={isFocus ? ink.accent : reasons.picked?.[place] ? ink.text : "none"}
            stroke-width={2}
          />
          {reasons.gold?.[place] && <rect x={at} y={y + 14} width={wide} height={3} fill={PEOPLE} />}
          <text
            x={at + wide / 2}
            y={y}
            text-anchor="middle"
            dominant-baseline="central"
            fill={step > 4 ? colours.ink[step] : ink.text}
          >
            {label}
          </text>
        </>
      );
    };
    const content = picture ? (
      <image
        href={inked(picture, ink.text).toDataURL()}
        x={24}
        y={top + 16}
        width={WIDTH - 48}
        height={STRIP}
        preserveAspectRatio="none"
      />
    ) : (
      units.list.map(token)
    );
    if (picture) y = top + STRIP;
    top = y + 46;
    return (
      <g>
        <text x={24} y={start} font-size={12} fill={ink.faint}>
          {title}
        </text>
        {content}
      </g>
    );
  });
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={WIDTH}
      height={top}
      viewBox={`0 0 ${WIDTH} ${top}`}
      font-family={FONT}
      font-size={SIZE}
    >
      <rect width={WIDTH} height={top} fill={ink.ground} />
      {parts}
    </svg>
  );
}

async function draw(scene: Scene) {
  const pictures: StillProps["pictures"] = {};
  if (scene.cols.kind === "sound") pictures.key = await loadSpectrogram(scene.cols);
  if (scene.rows.kind === "sound") pictures.query = await loadSpectrogram(scene.rows);
  return <Still scene={scene} pictures={pictures} />;
}

registerView({
  name: "text",
  title: "Text",
  hint: "The text itself, highlighted by weight; point at a token to see its weights.",
  accepts: (rows, cols) =>
    (cols.kind === "text" && lengthOf(rows) === 1) ||
    (Math.max(lengthOf(rows), lengthOf(cols)) <= MOST_LISTED &&
      ((cols.kind === "text" && (rows.kind === "text" || rows.kind === "sound")) ||
        (cols.kind === "sound" && rows.kind === "text"))),
  reads: true,
  Component: Highlights,
  draw,
});
