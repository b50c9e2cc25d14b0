/** Weights as pixels. */

import type { Colours } from "./colour";
import { firstFrom, rangeOf, type Matrix } from "./matrix";
import type { State } from "./state";

export type Display = Pick<State, "scale" | "threshold">;

const MOST = 4096;

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
 * A picture of a part of a map: so many pixels for each cell, across and down, at most one. Cells that share a pixel
 * show the largest weight, so a single strong weight never disappears.
 */
export function part(
  matrix: Matrix,
  display: Display,
  colours: Colours,
  [across, down]: readonly [number, number],
  [left, top, width, height]: readonly [number, number, number, number],
): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  const steps = new Uint8Array(width * height);
  // The cells that these pixels show: cell i has the pixel floor(i * across).
  const firstCol = Math.ceil(left / across);
  const lastCol = Math.min(matrix.cols.list.length, Math.ceil((left + width) / across));
  const lastRow = Math.min(matrix.rows.list.length, Math.ceil((top + height) / down));
  const { stored, values } = matrix;
  for (let i = Math.ceil(top / down); i < lastRow; i++) {
    const most = largestOf(matrix, i, display);
    const line = (Math.floor(i * down) - top) * width - left;
    const [start, end] = rangeOf(matrix, i);
    const from = stored ? firstFrom(stored.places, start, end, firstCol) : start + firstCol;
    const to = stored ? end : start + lastCol;
    for (let place = from; place < to; place++) {
      const col = stored ? stored.places[place]! : place - start;
      if (col >= lastCol) break;
      const step = stepFor(values[place]!, most, display);
      const pixel = line + (across === 1 ? col : Math.floor(col * across));
      if (step > steps[pixel]!) steps[pixel] = step;
    }
  }
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < pixels.length; place++) pixels[place] = colours.pixels[steps[place]!]!;
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The whole map, to be enlarged without smoothing: at most a pixel for each cell, and at most `MOST` on a side. */
export function picture(matrix: Matrix, display: Display, colours: Colours, cellPixels: number): HTMLCanvasElement {
  const [rows, cols] = [matrix.rows.list.length, matrix.cols.list.length];
  const pool = Math.max(1, Math.floor(1 / Math.max(cellPixels, 1e-3)), Math.ceil(Math.max(rows, cols) / MOST));
  const size = (count: number): number => Math.max(1, Math.ceil(count / pool));
  return part(matrix, display, colours, [1 / pool, 1 / pool], [0, 0, size(cols), size(rows)]);
}
