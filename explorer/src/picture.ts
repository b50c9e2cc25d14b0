/** Weights as pixels. */

import type { Colours } from "./colour";
import type { Matrix } from "./matrix";
import type { State } from "./state";

type Display = Pick<State, "scale" | "threshold">;

/** The step of the palette, of 0 to 255, that a weight is drawn with. */
export function shade(matrix: Matrix, row: number, weight: number, { scale, threshold }: Display): number {
  if (weight < threshold) return 0;
  const most = scale === "row" ? matrix.rowLargest[row]! : scale === "map" ? matrix.largest : 1;
  return most > 0 ? Math.min(255, Math.round((255 * weight) / most)) : 0;
}

/**
 * A picture with a pixel for each weight, to be enlarged without smoothing. Where a cell is smaller than a pixel of the
 * screen, neighbours share one, and the largest is seen: a single strong weight never disappears.
 */
export function picture(matrix: Matrix, display: Display, colours: Colours, cellPixels: number): HTMLCanvasElement {
  const rows = matrix.rows.list.length;
  const cols = matrix.cols.list.length;
  const pool = Math.max(1, Math.floor(1 / Math.max(cellPixels, 1e-3)));
  const width = Math.max(1, Math.ceil(cols / pool));
  const height = Math.max(1, Math.ceil(rows / pool));
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  const steps = new Uint8Array(width * height);
  for (let i = 0; i < rows; i++) {
    const most = display.scale === "row" ? matrix.rowLargest[i]! : display.scale === "map" ? matrix.largest : 1;
    const factor = most > 0 ? 255 / most : 0;
    const start = Math.floor(i / pool) * width;
    for (let j = 0; j < cols; j++) {
      const weight = matrix.values[i * cols + j]!;
      if (weight < display.threshold) continue;
      const step = Math.min(255, weight * factor + 0.5) | 0;
      const place = start + (pool === 1 ? j : Math.floor(j / pool));
      if (step > steps[place]!) steps[place] = step;
    }
  }
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < pixels.length; place++) pixels[place] = colours.pixels[steps[place]!]!;
  context.putImageData(image, 0, 0);
  return canvas;
}
