/** Weights and places in words. */

import { format } from "d3-format";
import { at, placeOf, type Matrix } from "./matrix";
import type { Cursor, State } from "./state";
import { visible, type Units } from "./units";

const plain = format(".4~f");
const small = format(".2~e");

export function written(value: number): string {
  if (value === 0) return "0";
  return value < 0.001 ? small(value) : plain(value);
}

/** A weight in a list: the same number of decimals in every line. */
export function aligned(value: number): string {
  return value > 0 && value < 0.00005 ? "< 0.0001" : value.toFixed(4);
}

/** The unit that contains a piece, or -1 if it is hidden or does not exist. */
export function unitAt(units: Units, piece: number): number {
  return units.of[piece] ?? -1;
}

export function cursorIn(matrix: Matrix, cursor: Cursor | null): { row: number; col: number } | null {
  if (!cursor) return null;
  const row = unitAt(matrix.rows, cursor.query);
  const col = unitAt(matrix.cols, cursor.key);
  return row < 0 || col < 0 ? null : { row, col };
}

/** The weight, and its error if that shows. */
export function numberAt(matrix: Matrix, row: number, col: number): string {
  if (placeOf(matrix, row, col) < 0) return "not kept";
  const value = at(matrix, row, col);
  const error = matrix.errorAt(row, col);
  if (value === 0) return error < 1e-7 ? "0" : `< ${small(error)}`; // below the first level
  if (error <= 1e-3 * value) return written(value);
  const decimals = Math.ceil(-Math.log10(error));
  return decimals > 6 ? `${small(value)} ± ${small(error)}` : `${value.toFixed(decimals)} ± ${error.toFixed(decimals)}`;
}

export function Reading({ matrix, state }: { matrix: Matrix; state: State }) {
  const place = cursorIn(matrix, state.cursor);
  if (!place) return null;
  const { row, col } = place;
  return (
    <span class="reading">
      <bdi>{visible(matrix.rows.list[row]!.label)}</bdi>
      {matrix.rows.list[row]!.origin && <span class="origin">{matrix.rows.list[row]!.origin}</span>}
      <span class="arrow" aria-label="attends to">
        →
      </span>
      <bdi>{visible(matrix.cols.list[col]!.label)}</bdi>
      <b>{numberAt(matrix, row, col)}</b>
      <span class="faint">
        row {row}, column {col}
      </span>
    </span>
  );
}
