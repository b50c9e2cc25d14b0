/** Weights as they are shown: aggregated over heads, merged into words, without hidden tokens. */

import { axesOf, lengthOf, loadHead, type AttentionMap, type Data, type Head } from "./data";
import { unitsOf, type Level, type Unit, type Units } from "./units";

export type HeadChoice = number | "mean" | "max";

export interface Matrix {
  readonly rows: Units;
  readonly cols: Units;
  /** Row by row: all weights, or only those that are stored. */
  readonly values: Float32Array;
  /** Of a map that stores some weights: their columns, from left to right in each row, and where rows begin. */
  readonly stored: { readonly places: Int32Array; readonly starts: Int32Array } | null;
  readonly rowLargest: Float32Array;
  readonly largest: number;
  /** At most this far from the true weight. */
  errorAt(row: number, col: number): number;
}

/** Where the weights of a row stand in `values`: from the first number up to the second. */
export function rangeOf({ stored, cols }: Matrix, row: number): readonly [number, number] {
  if (stored) return [stored.starts[row]!, stored.starts[row + 1]!];
  const width = cols.list.length;
  return [row * width, (row + 1) * width];
}

export function at(matrix: Matrix, row: number, col: number): number {
  const place = placeOf(matrix, row, col);
  return place < 0 ? 0 : (matrix.values[place] ?? 0);
}

/** Where the weight of a cell stands in `values`; -1 if it is not stored. */
export function placeOf(matrix: Matrix, row: number, col: number): number {
  const [from, to] = rangeOf(matrix, row);
  if (!matrix.stored) return from + col;
  const { places } = matrix.stored;
  const found = firstFrom(places, from, to, col);
  return found < to && places[found] === col ? found : -1;
}

/** The first of the places, which rise, that is not left of a column. */
export function firstFrom(places: Int32Array, from: number, to: number, col: number): number {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (places[middle]! < col) from = middle + 1;
    else to = middle;
  }
  return from;
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
  const width = lengthOf(axes.cols);
  const max = choice === "max";
  const { values, stored } =
    map.top === null
      ? { values: merged(aggregated(heads, lengthOf(axes.rows), width, data.levels, max), width, rows, cols), stored: null }
      : gathered(heads, map.top, data.levels, max, rows, cols);
  const rowLargest = new Float32Array(rows.list.length);
  const matrix = { rows, cols, values, stored, rowLargest, largest: 0 };
  const errorAt = (row: number, col: number): number =>
    errorOf(heads, map.top ?? width, data.levels, max, rows.list[row]!, cols.list[col]!);
  for (let i = 0; i < rowLargest.length; i++) {
    const [from, to] = rangeOf({ ...matrix, errorAt }, i);
    let most = 0;
    for (let j = from; j < to; j++) if (values[j]! > most) most = values[j]!;
    rowLargest[i] = most;
    if (most > matrix.largest) matrix.largest = most;
  }
  return { ...matrix, errorAt };
}

/** The part of a row's largest weight that each level stands for. */
function squaresOf(levels: number): Float32Array {
  return Float32Array.from({ length: levels + 1 }, (_, code) => (code / levels) ** 2);
}

/** Mean or maximum over heads, of w = largest * (code / levels)^2. */
function aggregated(heads: readonly Head[], rows: number, cols: number, levels: number, max: boolean): Float32Array {
  const squares = squaresOf(levels);
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

/** The same, and merged, for heads that store some weights of each row: no more than these are ever held. */
function gathered(
  heads: readonly Head[],
  perRow: number,
  levels: number,
  max: boolean,
  rows: Units,
  cols: Units,
): { values: Float32Array; stored: NonNullable<Matrix["stored"]> } {
  const squares = squaresOf(levels);
  const pieces = new Float32Array(cols.of.length); // of one row of pieces, over all heads
  const sums = new Float32Array(cols.list.length); // of one row of units
  const starts = new Int32Array(rows.list.length + 1);
  let places = new Int32Array(1 << 16);
  let values = new Float32Array(1 << 16);
  let count = 0;
  rows.list.forEach((unit, row) => {
    const touched = new Set<number>();
    for (const piece of unit.pieces) {
      const seen: number[] = [];
      for (const { largest, codes, places: columns } of heads) {
        const scale = largest[piece]! * (max ? 1 : 1 / heads.length);
        for (let place = piece * perRow; place < (piece + 1) * perRow; place++) {
          const weight = scale * squares[codes[place]!]!;
          if (weight === 0) continue;
          const col = columns![place]!;
          if (pieces[col] === 0) seen.push(col);
          pieces[col] = max ? Math.max(pieces[col]!, weight) : pieces[col]! + weight;
        }
      }
      for (const piece of seen) {
        const col = cols.of[piece]!;
        if (col >= 0) {
          sums[col]! += pieces[piece]! / unit.pieces.length;
          touched.add(col);
        }
        pieces[piece] = 0;
      }
    }
    const sorted = Int32Array.from(touched).sort();
    if (count + sorted.length > places.length) {
      const room = 2 * (count + sorted.length);
      [places, values] = [grown(places, new Int32Array(room)), grown(values, new Float32Array(room))];
    }
    for (const col of sorted) {
      places[count] = col;
      values[count++] = sums[col]!;
      sums[col] = 0;
    }
    starts[row + 1] = count;
  });
  return { values: values.subarray(0, count), stored: { places: places.subarray(0, count), starts } };
}

function grown<T extends Int32Array | Float32Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
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
  perRow: number,
  levels: number,
  max: boolean,
  row: Unit,
  col: Unit,
): number {
  let sum = 0;
  for (const i of row.pieces) {
    for (const j of col.pieces) {
      let over = 0;
      for (const { largest, codes, places } of heads) {
        const [from, to] = [i * perRow, (i + 1) * perRow];
        const place = places ? firstFrom(places, from, to, j) : from + j;
        if (places && (place === to || places[place] !== j)) continue; // not stored, so not rounded
        // Half a level up: ((c + 1/2)^2 - c^2) / L^2
        const error = (largest[i]! * (codes[place]! + 0.25)) / (levels * levels);
        over = max ? Math.max(over, error) : over + error / heads.length;
      }
      sum += over;
    }
  }
  return sum / row.pieces.length;
}
