/** The colour scale. */

import { scaleLinear } from "d3-scale";
import { coloursOf } from "./colour";
import type { State } from "./state";

const WIDTH = 170;
const MARKS = [0.01, 0.1, 0.3, 0.6];

export function Legend({ state, dark }: { state: State; dark: boolean }) {
  const { css } = coloursOf(state.palette, dark);
  const most = state.scale === "row" ? "row’s largest weight" : state.scale === "map" ? "map’s largest weight" : "1";
  const x = scaleLinear([0, 1], [0, WIDTH]);
  const steps = x.ticks(100);
  return (
    <div class="legend" role="img" aria-label={`Colours from a weight of 0 to ${most}`}>
      <span>0</span>
      <svg width={WIDTH} height={state.scale === "one" ? 24 : 10} aria-hidden="true" shape-rendering="crispEdges">
        {steps.slice(0, -1).map((t, number) => (
          <rect x={x(t)} width={x(steps[number + 1]!) - x(t) + 0.5} height="10" fill={css[Math.round(t * 255)]} />
        ))}
        {state.scale === "one" &&
          MARKS.map((weight) => (
            <>
              <line x1={x(Math.sqrt(weight))} x2={x(Math.sqrt(weight))} y2="12" class="edge" />
              <text x={x(Math.sqrt(weight))} y="22" text-anchor="middle" font-size="10" fill="currentColor">
                {weight}
              </text>
            </>
          ))}
        <rect x="0.5" y="0.5" width={WIDTH - 1} height="9" fill="none" class="edge" />
      </svg>
      <span>{most}</span>
    </div>
  );
}
