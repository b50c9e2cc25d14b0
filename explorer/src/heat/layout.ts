/** Where the parts of a heat map stand, and which row is in focus. */

import type { AttentionMap, SoundAxis } from "../data";
import { profile } from "../focus";
import { textWidth } from "../geometry";
import { unitAt } from "../reading";
import { sideNames } from "../sides";
import { spotlight, TIMES } from "../sound";
import { visible, type Unit } from "../units";
import type { Scene } from "../views/view";

const LARGEST_CELL = 36;
const SMALLEST_CELL = 0.002; // many cells may share a pixel
const WIDEST = 1.5; // times its height
export const LABEL = 12;
const STRIP = 130; // the height of a spectrogram

/** The names of the two sides, with the direction in which they run. */
export function sideSigns(map: AttentionMap): readonly [string, string] {
  const names = sideNames(map);
  return [`${names.key} →`, `${names.query} ↓`];
}

export interface Layout {
  readonly left: number;
  readonly top: number;
  /** A cell's width and height. */
  readonly wide: number;
  readonly high: number;
  readonly slanted: boolean;
  /** Room for the labels of rows. */
  readonly gutter: number;
  /** The height of the spectrogram above the columns; 0 if there is none. */
  readonly strip: number;
}

/** As large as fits, unless the reader has zoomed in. */
export function layoutOf({ matrix, map, cols }: Scene, width: number, height: number, zoom: number): Layout {
  const widest = (units: readonly Unit[]): number =>
    units.slice(0, 600).reduce((most, unit) => Math.max(most, textWidth(visible(unit.label).slice(0, 40), LABEL, 600)), 0);
  const sides = sideSigns(map).map((sign) => textWidth(sign, 11));
  const left = Math.max(Math.min(widest(matrix.rows.list), 150) + 14, Math.min(Math.max(...sides), 150) + 10);
  if (cols.kind === "sound") {
    const strip = Math.min(STRIP, Math.max(height * 0.3, 40));
    const top = TIMES + strip + 6;
    const wide = Math.max((width - left - 8) / matrix.cols.list.length, SMALLEST_CELL);
    const high = Math.min(Math.max((height - top - 8) / Math.max(matrix.rows.list.length, 1), SMALLEST_CELL), LARGEST_CELL);
    return { left, top, wide: wide * zoom, high: high * zoom, slanted: false, gutter: left, strip };
  }
  const columns = Math.min(widest(matrix.cols.list), 120);
  const slanted = columns > 14;
  const top = Math.max((slanted ? columns * 0.87 + 10 : LABEL) + 12, 36);
  const overhang = slanted ? columns * 0.5 : 0;
  const room = (space: number, units: readonly Unit[]): number =>
    Math.min(Math.max(space / Math.max(units.length, 1), SMALLEST_CELL), LARGEST_CELL);
  const across = room(width - left - overhang - 8, matrix.cols.list);
  const down = room(height - top - 8, matrix.rows.list);
  const wide = Math.min(across, down * WIDEST);
  const high = Math.min(down, across * WIDEST);
  // Small maps are centred.
  const spare = Math.max(0, width - left - overhang - 8 - wide * matrix.cols.list.length);
  return { left: left + (zoom === 1 ? spare / 2 : 0), top, wide: wide * zoom, high: high * zoom, slanted, gutter: left, strip: 0 };
}

export function soundOf({ cols }: Scene): SoundAxis | null {
  return cols.kind === "sound" ? cols : null;
}

/** The row in focus: the pinned one, otherwise the one at the cursor. */
export function rowInFocus({ matrix, state }: Scene): number | null {
  const pinned = state.pin?.side === "query" ? unitAt(matrix.rows, state.pin.piece) : -1;
  const row = pinned >= 0 ? pinned : state.cursor ? unitAt(matrix.rows, state.cursor.query) : -1;
  return row >= 0 ? row : null;
}

/** How strongly the row in focus attends to each frame. */
export function framesInFocus(scene: Scene): Float32Array | null {
  const row = rowInFocus(scene);
  return row === null ? null : spotlight(profile(scene.matrix, { side: "query", unit: row }));
}
