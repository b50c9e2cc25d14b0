/** Weights as they are shown: aggregated over heads, merged into words, without hidden tokens. */

import { axesOf, lengthOf, loadHead, type AttentionMap, type Data, type Head } from "./data";
import { unitsOf, type Level, type Unit, type Units } from "./units";

export type HeadChoice = number | "mean" | "max";

export interface Matrix {
  readonly rows: Units;
  readonly cols: Units;
  /** Row by row. */
  readonly values: Float32Array;
  readonly rowLargest: Float32Array;
  readonly largest: number;
  /** At most this far from the true weight. */
  errorAt(row: number, col: number): number;
}

export function at(matrix: Matrix, row: number, col: number): number {
  return matrix.values[row * matrix.cols.list.length + col] ?? 0;
}

const MOST_KEPT = 24;
const kept = new Map<string, Promise<Matrix>>();

export function loadMatrix(
  data: Data,
  map: AttentionMap,
  choice: HeadChoice,
  level: Level,
  showSpecial: boolean,
): Promise<Matrix> {
  const key = [map.block, choice, level, showSpecial].join();
  const known = kept.get(key);
  if (known) return known;
  const loading = computeMatrix(data, map, choice, level, showSpecial);
  kept.set(key, loading);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  return loading;
}

export async function computeMatrix(
  data: Data,
  map: AttentionMap,
  choice: HeadChoice,
  level: Level,
  showSpecial: boolean,
): Promise<Matrix> {
  const axes = axesOf(data, map);
  const rows = unitsOf(axes.rows, level, showSpecial);
  const cols = unitsOf(axes.cols, level, showSpecial);
  const numbers = typeof choice === "number" ? [choice] : Array.from({ length: map.heads }, (_, head) => head);
  const heads = await Promise.all(numbers.map((head) => loadHead(data, map, head)));
  const pieces = aggregated(heads, lengthOf(axes.rows), lengthOf(axes.cols), data.levels, choice === "max");
  const values = merged(pieces, lengthOf(axes.cols), rows, cols);
  const rowLargest = new Float32Array(rows.list.length);
  let largest = 0;
  const width = cols.list.length;
  for (let i = 0; i < rowLargest.length; i++) {
    let most = 0;
    for (let j = i * width; j < (i + 1) * width; j++) if (values[j]! > most) most = values[j]!;
    rowLargest[i] = most;
    if (most > largest) largest = most;
  }
  const errorAt = (row: number, col: number): number =>
    errorOf(heads, lengthOf(axes.cols), data.levels, choice === "max", rows.list[row]!, cols.list[col]!);
  return { rows, cols, values, rowLargest, largest, errorAt };
}

/** Mean or maximum over heads, of w = largest * (code / levels)^2. */
function aggregated(heads: readonly Head[], rows: number, cols: number, levels: number, max: boolean): Float32Array {
  const squares = new Float32Array(levels + 1);
  for (let code = 0; code <= levels; code++) squares[code] = (code / levels) ** 2;
  const out = new Float32Array(rows * cols);
  const share = max ? 1 : 1 / heads.length;
  for (const { largest, codes } of heads) {
    for (let i = 0, place = 0; i < rows; i++) {
      const scale = largest[i]! * share;
      if (scale === 0) {
        place += cols;
        continue;
      }
      if (max) {
        for (let j = 0; j < cols; j++, place++) {
          const weight = scale * squares[codes[place]!]!;
          if (weight > out[place]!) out[place] = weight;
        }
      } else {
        for (let j = 0; j < cols; j++, place++) out[place]! += scale * squares[codes[place]!]!;
      }
    }
  }
  return out;
}

/** Columns of a word are added up, rows are averaged. */
function merged(pieces: Float32Array, width: number, rows: Units, cols: Units): Float32Array {
  const every = (units: Units): boolean =>
    units.list.length === units.of.length && units.list.every((unit) => unit.pieces.length === 1);
  if (every(rows) && every(cols)) return pieces;
  const out = new Float32Array(rows.list.length * cols.list.length);
  const target = cols.of;
  rows.list.forEach((unit, row) => {
    const start = row * cols.list.length;
    const share = 1 / unit.pieces.length;
    for (const piece of unit.pieces) {
      for (let j = 0; j < width; j++) {
        const col = target[j]!;
        if (col >= 0) out[start + col]! += share * pieces[piece * width + j]!;
      }
    }
  });
  return out;
}

function errorOf(
  heads: readonly Head[],
  width: number,
  levels: number,
  max: boolean,
  row: Unit,
  col: Unit,
): number {
  let sum = 0;
  for (const i of row.pieces) {
    for (const j of col.pieces) {
      let over = 0;
      for (const { largest, codes } of heads) {
        // Half a level up: ((c + 1/2)^2 - c^2) / L^2
        const error = (largest[i]! * (codes[i * width + j]! + 0.25)) / (levels * levels);
        over = max ? Math.max(over, error) : over + error / heads.length;
      }
      sum += over;
    }
  }
  return sum / row.pieces.length;
}
