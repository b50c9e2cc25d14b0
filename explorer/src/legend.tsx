/** What the colours mean. */

import { scaleLinear } from "d3-scale";
import { coloursOf } from "./colour";
import type { State } from "./state";

const WIDTH = 170;

export function Legend({ state, dark }: { state: State; dark: boolean }) {
  const { css } = coloursOf(state.palette, dark);
  const most = state.scale === "row" ? "row’s largest" : state.scale === "map" ? "map’s largest" : "1";
  const x = scaleLinear([0, 1], [0, WIDTH]);
  const steps = x.ticks(100);
  return (
    <div class="legend" role="img" aria-label={`Colours from a weight of 0 to ${most}`}>
      <span>0</span>
      <svg width={WIDTH} height="10" aria-hidden="true" shape-rendering="crispEdges">
        {steps.slice(0, -1).map((t, number) => (
          <rect x={x(t)} width={x(steps[number + 1]!) - x(t) + 0.5} height="10" fill={css[Math.round(t * 255)]} />
        ))}
        <rect x="0.5" y="0.5" width={WIDTH - 1} height="9" fill="none" class="edge" />
      </svg>
      <span>{most}</span>
    </div>
  );
}
