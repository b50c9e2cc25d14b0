/** The texts themselves, marked as with a pen. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import { profile, shades, unitsOn, useFocus, type Focus, type Focusing } from "../focus";
import { FONT, runsLeft, textWidth } from "../geometry";
import { written } from "../reading";
import type { Side } from "../state";
import { visible, type Units } from "../units";
import { registerView, type Scene } from "./view";

interface TextProps {
  scene: Scene;
  side: Side;
  units: Units;
  focusing: Focusing;
  /** Weights and palette steps of this side's tokens, if it is the side that is marked. */
  marks: { weights: Float32Array; steps: Uint8Array } | null;
}

function Text({ scene, side, units, focusing, marks }: TextProps) {
  const { colours, state } = scene;
  const unitOf = (event: MouseEvent): Focus | null => {
    const found = event.target instanceof Element ? event.target.closest("[data-unit]") : null;
    return found ? { side, unit: Number(found.getAttribute("data-unit")) } : null;
  };
  const paragraph = useRef<HTMLParagraphElement>(null);
  // The strongest mark of a long text is brought into sight.
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
            <bdi
              data-unit={place}
              class="mark"
              data-focus={focus?.side === side && focus.unit === place}
              data-pinned={pinned?.side === side && pinned.unit === place}
              data-special={unit.special}
              title={marks ? written(marks.weights[place]!) : undefined}
              style={step > 4 ? { background: colours.css[step], color: colours.ink[step] } : {}}
            >
              {visible(unit.label)}
            </bdi>{" "}
          </>
        );
      })}
    </p>
  );
}

/** The side that is marked, and with what. */
function useMarks(scene: Scene, focus: Focus | null) {
  const { matrix, state } = scene;
  return useMemo(() => {
    const weights = profile(matrix, focus);
    const steps = shades(matrix, weights, focus ? state : { ...state, scale: "row" });
    return { side: focus?.side === "key" ? ("query" as const) : ("key" as const), weights, steps };
  }, [matrix, focus?.side, focus?.unit, state.scale, state.threshold]);
}

function Highlights(scene: Scene) {
  const { matrix } = scene;
  const focusing = useFocus(scene);
  const marks = useMarks(scene, focusing.focus);
  const { focus } = focusing;
  const label = focus ? visible(unitsOn(matrix, focus.side).list[focus.unit]!.label) : "";
  const title = (side: Side) =>
    marks.side !== side ? (
      side === "query" ? "Looks" : "Is looked at"
    ) : !focus ? (
      "Is looked at, by all on average"
    ) : side === "key" ? (
      <>
        What <bdi>{label}</bdi> looks at
      </>
    ) : (
      <>
        Who looks at <bdi>{label}</bdi>
      </>
    );
  return (
    <div
      class="frame highlights"
      tabIndex={0}
      role="application"
      aria-roledescription="highlighted text"
      aria-label={`Text of ${scene.map.name}, marked by weight. Up and down move through the text that looks, Enter pins.`}
    >
      {(["query", "key"] as const).map((side) => (
        <section class="card">
          <h3>{title(side)}</h3>
          <Text
            scene={scene}
            side={side}
            units={unitsOn(matrix, side)}
            focusing={focusing}
            marks={marks.side === side ? marks : null}
          />
        </section>
      ))}
    </div>
  );
}

const WIDTH = 900;
const SIZE = 15;
const LINE = 30;

/** The same as a drawing: tokens set one after another, from the side where the text begins. */
function Still({ scene }: { scene: Scene }) {
  const { matrix, ink, colours } = scene;
  const { focus } = useFocus(scene);
  const marks = useMarks(scene, focus);
  let top = 20;
  const parts = (["query", "key"] as const).map((side) => {
    const units = unitsOn(matrix, side);
    const left = runsLeft(units.list);
    const title = side === "query" ? "looks" : "is looked at";
    const start = top;
    let x = 0;
    let y = top + 34;
    const tokens = units.list.map((unit, place) => {
      const label = visible(unit.label);
      const wide = Math.min(textWidth(label, SIZE) + 10, WIDTH - 48);
      if (x > 0 && x + wide > WIDTH - 48) {
        x = 0;
        y += LINE;
      }
      const step = marks.side === side ? marks.steps[place]! : 0;
      const isFocus = focus?.side === side && focus.unit === place;
      const at = left ? WIDTH - 24 - x - wide : 24 + x;
      x += wide + 4;
      return (
        <>
          <rect
            x={at}
            y={y - 13}
            width={wide}
            height={26}
            rx={5}
            fill={step > 4 ? colours.css[step] : "none"}
            stroke={isFocus ? ink.accent : "none"}
            stroke-width={2}
          />
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
    });
    top = y + 46;
    return (
      <g>
        <text x={24} y={start} font-size={12} fill={ink.faint}>
          {title}
        </text>
        {tokens}
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

registerView({
  name: "text",
  title: "Text",
  hint: "The texts, each token marked by its weight; point at one to see what it looks at.",
  accepts: (rows, cols) => rows.kind === "text" && cols.kind === "text",
  reads: true,
  Component: Highlights,
  draw: (scene) => <Still scene={scene} />,
});
