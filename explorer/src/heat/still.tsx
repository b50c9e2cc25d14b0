/** A heat map as a drawing for a file. */

import type { SoundAxis } from "../data";
import { FONT, shortened } from "../geometry";
import { linkedUnits } from "../links";
import { picture } from "../picture";
import { inked, loadSpectrogram, TIMES, timeTicks } from "../sound";
import { visible } from "../units";
import type { Scene } from "../views/view";
import { LABEL, layoutOf, soundOf } from "./layout";

/** Cells as one small picture that is enlarged without blur, labels as text. */
export async function draw(scene: Scene) {
  const { matrix, ink, colours, state } = scene;
  const sound = soundOf(scene);
  const { gutter: left, top, slanted, strip, ...cell } = layoutOf(scene, 1100, sound ? 600 : 1100, 1);
  const [wide, high] = [Math.max(cell.wide, 2), Math.max(cell.high, 2)];
  const rows = matrix.rows.list;
  const cols = matrix.cols.list;
  const [across, down] = [cols.length * wide, rows.length * high];
  const each = (size: number): number => Math.max(1, Math.ceil((LABEL + 1) / size));
  const width = left + across + (slanted ? 70 : 8);
  const height = top + down + 8;
  const links = state.links ? linkedUnits(scene) : [];
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <rect width={width} height={height} fill={ink.ground} />
      <image
        href={picture(matrix, state, colours, 1).toDataURL()}
        x={left}
        y={top}
        width={across}
        height={down}
        preserveAspectRatio="none"
        image-rendering="pixelated"
      />
      <rect
        x={left}
        y={top}
        width={across}
        height={down}
        fill="none"
        stroke={ink.line}
      />
      {sound && <StillSound axis={sound} scene={scene} picture={await loadSpectrogram(sound)} x={left} width={across} strip={strip} />}
      <g font-family={FONT} font-size={LABEL} fill={ink.text}>
        {rows.map((unit, i) =>
          i % each(high) === 0 ? (
            <text x={left - 7} y={top + (i + 0.5) * high} text-anchor="end" dominant-baseline="central">
              {shortened(visible(unit.label), 150)}
            </text>
          ) : null,
        )}
        {cols.map((unit, j) =>
          !sound && j % each(wide) === 0 ? (
            <text
              transform={`translate(${left + (j + 0.5) * wide} ${top - 7})${slanted ? " rotate(-60)" : ""}`}
              text-anchor={slanted ? "start" : "middle"}
              dominant-baseline={slanted ? "central" : "auto"}
            >
              {shortened(visible(unit.label), 120)}
            </text>
          ) : null,
        )}
      </g>
      <g fill="none" stroke={ink.accent} stroke-width={Math.min(Math.max(Math.min(wide, high) / 12, 0.75), 2)}>
        {links.map(([row, col]) => (
          <rect x={left + col * wide + 1} y={top + row * high + 1} width={wide - 2} height={high - 2} />
        ))}
      </g>
    </svg>
  );
}

interface StillProps {
  axis: SoundAxis;
  scene: Scene;
  picture: HTMLCanvasElement;
  x: number;
  width: number;
  strip: number;
}

function StillSound({ axis, scene, picture, x, width, strip }: StillProps) {
  const { ink } = scene;
  return (
    <g transform={`translate(${x} ${TIMES})`} font-family={FONT} font-size={11} fill={ink.faint}>
      <image href={inked(picture, ink.text).toDataURL()} width={width} height={strip} preserveAspectRatio="none" />
      <rect width={width} height={strip} fill="none" stroke={ink.line} />
      {timeTicks(axis, width).map((tick) => (
        <text x={tick.x} y={-5}>
          {tick.text}
        </text>
      ))}
    </g>
  );
}
