/** The token in focus: the one under the pointer, otherwise the pinned one, otherwise the one at the cursor. */

import { useState } from "preact/hooks";
import { at, rangeOf, type Matrix } from "./matrix";
import { stepFor } from "./picture";
import { unitAt } from "./reading";
import type { Side, State } from "./state";
import type { Scene } from "./views/view";

export interface Focus {
  readonly side: Side;
  readonly unit: number;
}

export interface Focusing {
  readonly focus: Focus | null;
  readonly hovered: boolean;
  readonly pinned: Focus | null;
  /** Follows the pointer; null when it has left. */
  point(to: Focus | null): void;
  /** Pins a token, or unpins it. */
  press(to: Focus): void;
}

export function useFocus({ matrix, state, update }: Scene): Focusing {
  const [hover, setHover] = useState<Focus | null>(null);
  const pinned = pinnedIn(matrix, state);
  const known = hover && hover.unit < unitsOn(matrix, hover.side).list.length ? hover : null;
  return {
    focus: known ?? pinned ?? cursorFocus(matrix, state),
    hovered: known !== null,
    pinned,
    point(to) {
      setHover(to);
      if (!to) return;
      // The status line reads the strongest weight of this token.
      const other = strongest(matrix, to);
      const [row, col] = to.side === "query" ? [to.unit, other] : [other, to.unit];
      const [query, key] = [matrix.rows.list[row]?.pieces[0], matrix.cols.list[col]?.pieces[0]];
      if (query !== undefined && key !== undefined) update({ cursor: { query, key } });
    },
    press(to) {
      const same = pinned?.side === to.side && pinned.unit === to.unit;
      update({ pin: same ? null : { side: to.side, piece: unitsOn(matrix, to.side).list[to.unit]!.pieces[0]! } });
    },
  };
}

export function unitsOn(matrix: Matrix, side: Side): Matrix["rows"] {
  return side === "query" ? matrix.rows : matrix.cols;
}

export function pinnedIn(matrix: Matrix, state: State): Focus | null {
  if (!state.pin) return null;
  const unit = unitAt(unitsOn(matrix, state.pin.side), state.pin.piece);
  return unit < 0 ? null : { side: state.pin.side, unit };
}

function cursorFocus(matrix: Matrix, state: State): Focus | null {
  const unit = state.cursor ? unitAt(matrix.rows, state.cursor.query) : -1;
  return unit < 0 ? null : { side: "query", unit };
}

/** The weights between a token and the other side; without a token, the average weight of each key. */
export function profile(matrix: Matrix, focus: Focus | null): Float32Array {
  const rows = matrix.rows.list.length;
  const cols = matrix.cols.list.length;
  const { stored, values } = matrix;
  if (focus?.side === "query" && !stored) return values.subarray(...rangeOf(matrix, focus.unit));
  if (focus?.side === "key") return Float32Array.from({ length: rows }, (_, row) => at(matrix, row, focus.unit));
  const sums = new Float32Array(cols);
  const [first, last, share] = focus ? [focus.unit, focus.unit + 1, 1] : [0, rows, 1 / rows];
  for (let i = first; i < last; i++) {
    const [from, to] = rangeOf(matrix, i);
    for (let place = from; place < to; place++) sums[stored ? stored.places[place]! : place - from]! += share * values[place]!;
  }
  return sums;
}

function strongest(matrix: Matrix, focus: Focus): number {
  const weights = profile(matrix, focus);
  let best = 0;
  for (let place = 1; place < weights.length; place++) if (weights[place]! > weights[best]!) best = place;
  return best;
}

/** The palette step of each weight of a profile. */
export function shades(matrix: Matrix, weights: Float32Array, state: State): Uint8Array {
  let most = state.scale === "one" ? 1 : state.scale === "map" ? matrix.largest : 0;
  if (state.scale === "row") for (const weight of weights) most = Math.max(most, weight);
  return Uint8Array.from(weights, (weight) => stepFor(weight, most, state));
}
