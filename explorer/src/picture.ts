/** Weights as pixels. */

import type { Colours } from "./colour";
import type { Matrix } from "./matrix";
import type { State } from "./state";

type Display = Pick<State, "scale" | "threshold">;

/**
 * The step of the palette, 0 to 255, for a weight. The absolute scale, from 0 to 1, follows the square root, so that
 * the small weights of long inputs can be seen; relative scales are linear up to `most`.
 */
export function stepFor(weight: number, most: number, { scale, threshold }: Display): number {
  if (weight < threshold || most <= 0) return 0;
  return Math.min(255, Math.round(255 * (scale === "one" ? Math.sqrt(weight) : weight / most)));
}

export function shade(matrix: Matrix, row: number, weight: number, display: Display): number {
  return stepFor(weight, largestOf(matrix, row, display), display);
}

/** The weight drawn in full colour. */
function largestOf(matrix: Matrix, row: number, { scale }: Display): number {
  return scale === "row" ? matrix.rowLargest[row]! : scale === "map" ? matrix.largest : 1;
}

/**
 * A picture with one pixel per weight, to be enlarged without smoothing. Cells smaller than a pixel of the screen share
 * one and show the largest weight, so a single strong weight never disappears.
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
    const most = largestOf(matrix, i, display);
    const start = Math.floor(i / pool) * width;
    for (let j = 0; j < cols; j++) {
      const weight = matrix.values[i * cols + j]!;
      const step = stepFor(weight, most, display);
      const place = start + (pool === 1 ? j : Math.floor(j / pool));
      if (step > steps[place]!) steps[place] = step;
    }
  }
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < pixels.length; place++) pixels[place] = colours.pixels[steps[place]!]!;
  context.putImageData(image, 0, 0);
  return canvas;
}
