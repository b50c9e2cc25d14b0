/** A known alignment, in the units that are shown. */

import { unitsOf } from "./units";
import type { Scene } from "./views/view";

/** (row, column) of every cell that the alignment links; none if a text attends to itself. */
export function linkedUnits({ item, map, rows, cols, matrix }: Scene): (readonly [number, number])[] {
  if (!item.links || map.rows === map.cols) return [];
  const queryWords = rows.kind === "text" && rows.words ? rows.words : null;
  const keyWords = cols.kind === "text" && cols.words ? cols.words : null;
  const count = (axis: typeof rows): number => unitsOf(axis, "pieces", true).list.length;
  const [queries, keys] = [queryWords?.length ?? count(rows), keyWords?.length ?? count(cols)];
  const found = new Map<string, readonly [number, number]>();
  for (const [key, query] of item.links) {
    if (query >= queries || key >= keys) continue;
    for (const i of queryWords?.[query] ?? [query]) {
      for (const j of keyWords?.[key] ?? [key]) {
        const row = matrix.rows.of[i]!;
        const col = matrix.cols.of[j]!;
        if (row >= 0 && col >= 0) found.set(`${row} ${col}`, [row, col]);
      }
    }
  }
  return [...found.values()];
}
