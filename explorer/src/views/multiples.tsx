/** Every layer and head as a small heat map that opens on a click. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FONT, shortened } from "../geometry";
import { computeMatrix } from "../matrix";
import { mapTitle } from "../pane";
import { picture } from "../picture";
import type { AttentionMap } from "../data";
import { registerView, type Scene } from "./view";

const GAP = 6;
const SMALLEST = 34;
const LARGEST = 132;

type Thumb = HTMLCanvasElement;

/** Pictures of every head, drawn one after another, so that the page stays responsive. */
function useThumbs(scene: Scene, side: number): (map: AttentionMap, head: number) => Thumb | undefined {
  const { data, item, state, colours } = scene;
  const [, setDone] = useState(0);
  const settings = [state.level, state.special, state.scale, state.threshold, side];
  const thumbs = useMemo(() => new Map<number, Thumb>(), [item, colours, ...settings]);
  useEffect(() => {
    let wanted = true;
    let shown = 0;
    const work = async (): Promise<void> => {
      for (const map of item.maps) {
        for (let head = 0; head < map.heads && wanted; head++) {
          if (thumbs.has(map.block + head)) continue;
          const matrix = await computeMatrix(data, map, head, state.level, state.special);
          const most = Math.max(matrix.rows.list.length, matrix.cols.list.length, 1);
          thumbs.set(map.block + head, picture(matrix, state, colours, (side * devicePixelRatio) / most));
          if (performance.now() - shown > 200) {
            shown = performance.now();
            setDone((done) => done + 1);
          }
        }
      }
      if (wanted) setDone((done) => done + 1);
    };
    void work();
    return () => {
      wanted = false;
    };
  }, [thumbs]);
  return (map, head) => thumbs.get(map.block + head);
}

function Small({ thumb, side }: { thumb: Thumb | undefined; side: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const target = canvas.current;
    if (!target || !thumb) return;
    const pixels = Math.round(side * devicePixelRatio);
    target.width = pixels;
    target.height = pixels;
    const context = target.getContext("2d")!;
    // Enlarge without blur, shrink with smoothing.
    context.imageSmoothingEnabled = thumb.width > pixels;
    context.imageSmoothingQuality = "high";
    context.drawImage(thumb, 0, 0, pixels, pixels);
  }, [thumb, side]);
  return <canvas ref={canvas} style={{ width: `${side}px`, height: `${side}px` }} data-drawn={thumb !== undefined} />;
}

function sideFor(width: number, heads: number): number {
  return Math.floor(Math.min(Math.max((width - 225) / heads - GAP, SMALLEST), LARGEST));
}

function Multiples(scene: Scene) {
  const { item, choice, state, update, width } = scene;
  const heads = Math.max(...item.maps.map((map) => map.heads));
  const side = sideFor(width, heads);
  const thumb = useThumbs(scene, side);
  const open = (map: number, head: number | "mean"): void => {
    const left = state.panes[0];
    const isLeft = left.item === choice.item && left.map === choice.map && left.head === choice.head;
    const next = { item: choice.item, map, head };
    const [first, second] = state.panes;
    update({ view: "heat", panes: second === undefined ? [next] : isLeft ? [next, second] : [first, next] });
  };
  return (
    <div class="frame multiples">
      <table aria-label="All layers and heads">
        <thead>
          <tr>
            <td />
            {Array.from({ length: heads }, (_, head) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {item.maps.map((map, number) => (
            <tr>
              <th scope="row">
                <button title={`Open the mean of its heads: ${map.name}`} onClick={() => open(number, "mean")}>
                  {mapTitle(map)}
                </button>
              </th>
              {Array.from({ length: map.heads }, (_, head) => (
                <td>
                  <button
                    class="small"
                    aria-label={`Open ${map.name}, head ${head}`}
                    aria-current={number === choice.map && head === choice.head}
                    title={`${map.name}, head ${head}`}
                    onClick={() => open(number, head)}
                  >
                    <Small thumb={thumb(map, head)} side={side} />
                  </button>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

async function draw(scene: Scene) {
  const { data, item, state, colours, ink } = scene;
  const heads = Math.max(...item.maps.map((map) => map.heads));
  const side = sideFor(1400, heads);
  const left = 190;
  const step = side + GAP;
  const addresses: string[][] = [];
  for (const map of item.maps) {
    const line: string[] = [];
    for (let head = 0; head < map.heads; head++) {
      const matrix = await computeMatrix(data, map, head, state.level, state.special);
      const most = Math.max(matrix.rows.list.length, matrix.cols.list.length, 1);
      line.push(picture(matrix, state, colours, (2 * side) / most).toDataURL());
    }
    addresses.push(line);
  }
  const width = left + heads * step + 10;
  const height = 30 + item.maps.length * step + 10;
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      font-family={FONT}
      font-size={12}
      fill={ink.text}
    >
      <rect width={width} height={height} fill={ink.ground} />
      {Array.from({ length: heads }, (_, head) => (
        <text x={left + head * step + side / 2} y={20} text-anchor="middle">
          {head}
        </text>
      ))}
      {item.maps.map((map, row) => (
        <>
          <text x={left - 10} y={30 + row * step + side / 2} text-anchor="end" dominant-baseline="central">
            {shortened(mapTitle(map), left - 16)}
          </text>
          {addresses[row]!.map((href, head) => (
            <>
              <image
                href={href}
                x={left + head * step}
                y={30 + row * step}
                width={side}
                height={side}
                preserveAspectRatio="none"
                image-rendering="pixelated"
              />
              <rect
                x={left + head * step}
                y={30 + row * step}
                width={side}
                height={side}
                fill="none"
                stroke={ink.line}
              />
            </>
          ))}
        </>
      ))}
    </svg>
  );
}

registerView({
  name: "heads",
  title: "All heads",
  hint: "Every layer and head as a small heat map; a click opens it.",
  accepts: (_rows, _cols, item) => item.maps.length > 1 || item.maps.some((map) => map.heads > 1),
  Component: Multiples,
  draw,
});
