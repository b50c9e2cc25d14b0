/** A node's neighbourhood, laid out around it. */

import type { NodeAxis } from "./data";
import { textWidth } from "./geometry";
import { at, type Matrix } from "./matrix";
import { unitAt } from "./reading";
import { visible } from "./units";
import type { Scene } from "./views/view";

export interface Node {
  /** Its column, and its row if it attends to others itself; -1 if it does not. */
  readonly col: number;
  readonly row: number;
  readonly name: string;
  readonly label: string;
  readonly x: number;
  readonly y: number;
  /** Direction from the centre, in radians. */
  readonly angle: number;
  /** Whether there is room for its name. */
  readonly named: boolean;
}

/** An edge that does not end in the centre: of the neighbours among themselves, and to the second hop. */
export interface FarEdge {
  readonly from: Node;
  readonly to: Node;
  readonly row: number;
}

export interface Graph {
  readonly row: number;
  readonly name: string;
  readonly label: string;
  /** The column of the centre itself, -1 if it does not attend to itself. */
  readonly self: number;
  readonly first: readonly Node[];
  readonly second: readonly Node[];
  readonly far: readonly FarEdge[];
  /** How many nodes of the second hop there was no room for. */
  readonly cut: number;
  /** The radius of a neighbour, and the width of the heaviest edge: both shrink as neighbours grow many. */
  readonly dot: number;
  readonly widest: number;
  /** How near the pointer must come to a neighbour: never nearer to the next one. */
  readonly reach: number;
  /** Whether names run outwards instead of from left to right. */
  readonly radial: boolean;
  readonly width: number;
  readonly height: number;
}

const MOST_SECOND = 240;
const MOST_HORIZONTAL = 16;
const LINE = 12;
export const NAME = 11.5;
export const LONGEST_NAME = 110;

/** The row in the centre: the pinned one, otherwise the axis's own, otherwise the one at the cursor. */
export function centreRow({ matrix, rows, state }: Scene): number {
  const pinned = state.pin?.side === "query" ? unitAt(matrix.rows, state.pin.piece) : -1;
  if (pinned >= 0) return pinned;
  if (rows.kind === "nodes") return rows.centre;
  return Math.max(0, state.cursor ? unitAt(matrix.rows, state.cursor.query) : 0);
}

/** `all` holds the largest weight over heads: it decides which edges exist, so that heads share one layout. */
export function graphOf(scene: Scene, all: Matrix, width: number, height: number, names = true): Graph {
  const cols = scene.cols as NodeAxis;
  const rowNames = all.rows.list.map((unit) => unit.label);
  const rowOf = new Map(scene.rows.kind === "nodes" ? rowNames.map((name, row) => [name, row]) : []);
  const row = Math.min(centreRow(scene), rowNames.length - 1);
  const name = rowNames[row] ?? "";
  const self = scene.rows.kind === "nodes" ? cols.names.indexOf(name) : -1;
  const alone = rowNames.length === 1;
  const labelOf = (col: number): string => cols.labels?.[col] ?? "";
  const classes = [...new Set(cols.labels ?? [""])];
  const near = cols.names
    .map((_, col) => col)
    .filter((col) => col !== self && (alone || at(all, row, col) > 0))
    .sort((a, b) => classes.indexOf(labelOf(a)) - classes.indexOf(labelOf(b)) || at(all, row, b) - at(all, row, a));

  const isNear = new Set(near);
  const parents = new Map<number, { parent: number; weight: number }>();
  for (const col of alone ? [] : near) {
    const from = rowOf.get(cols.names[col]!);
    if (from === undefined) continue;
    for (let to = 0; to < cols.names.length; to++) {
      const weight = at(all, from, to);
      if (weight <= 0 || to === col || to === self || isNear.has(to)) continue;
      if (weight > (parents.get(to)?.weight ?? 0)) parents.set(to, { parent: col, weight });
    }
  }
  const outer = [...parents.entries()].sort((a, b) => b[1].weight - a[1].weight);
  const shown = outer.slice(0, MOST_SECOND);

  const radial = near.length > MOST_HORIZONTAL || shown.length > 0;
  const longest = near.reduce((most, col) => Math.max(most, textWidth(visible(cols.names[col]!).slice(0, 30), NAME)), 0);
  const room = names ? Math.min(longest, LONGEST_NAME) + 10 : 4;
  const rx = Math.max(width / 2 - (shown.length > 0 ? 14 : room) - 10, 40);
  const ry = Math.max(height / 2 - (shown.length > 0 ? 14 : radial ? room : 20) - 10, 40);
  const share = shown.length > 0 ? Math.max(0.4, 1 - (room + 16) / Math.min(rx, ry)) : 1;
  const place = (angle: number, part: number): { x: number; y: number; angle: number } => ({
    x: width / 2 + Math.cos(angle) * rx * part,
    y: height / 2 + Math.sin(angle) * ry * part,
    angle: Math.atan2(Math.sin(angle) * ry, Math.cos(angle) * rx),
  });
  const turn = (2 * Math.PI) / Math.max(near.length, 1);
  const spots = near.map((_, number) => place(-Math.PI / 2 + number * turn, share));
  const named = roomy(near.map((col) => at(all, row, col)), spots);
  const node = (col: number, spot: { x: number; y: number; angle: number }, isNamed: boolean): Node => ({
    col,
    row: rowOf.get(cols.names[col]!) ?? -1,
    name: cols.names[col]!,
    label: labelOf(col),
    ...spot,
    named: isNamed,
  });
  const first = near.map((col, number) => node(col, spots[number]!, radial ? named[number]! : true));

  const orderOf = new Map(near.map((col, number) => [col, number]));
  const fans = new Map<number, number[]>();
  for (const [col, { parent }] of shown) fans.set(parent, [...(fans.get(parent) ?? []), col]);
  const second = [...fans].flatMap(([parent, fan]) =>
    fan.map((col, number) => {
      const offset = ((number + 0.5) / fan.length - 0.5) * turn * 0.9;
      return node(col, place(-Math.PI / 2 + orderOf.get(parent)! * turn + offset, 1), false);
    }),
  );
  const byCol = new Map([...first, ...second].map((each) => [each.col, each]));
  const far: FarEdge[] = [];
  for (const from of first) {
    if (alone || from.row < 0) continue;
    for (const to of byCol.values()) if (to !== from && at(all, from.row, to.col) > 0) far.push({ from, to, row: from.row });
  }
  const apart = (Math.PI * (rx + ry) * share) / Math.max(near.length, 1);
  const dot = Math.min(Math.max(apart / 2.6, 1.5), 6);
  const reach = Math.max(dot, Math.min(apart / 2, 9));
  const widest = Math.min(Math.max(apart, 3), names ? 14 : 7);
  const label = self >= 0 ? labelOf(self) : scene.rows.kind === "nodes" ? (scene.rows.labels?.[row] ?? "") : "";
  return { row, name, label, self, first, second, far, cut: outer.length - shown.length, dot, widest, reach, radial, width, height };
}

/** Which names can be written without touching another, the heaviest first. */
function roomy(weights: readonly number[], spots: readonly { x: number; y: number }[]): boolean[] {
  const order = weights.map((_, number) => number).sort((a, b) => weights[b]! - weights[a]!);
  const taken: { x: number; y: number }[] = [];
  const named = weights.map(() => false);
  for (const number of order) {
    const { x, y } = spots[number]!;
    if (taken.some((other) => Math.hypot(other.x - x, other.y - y) < LINE)) continue;
    taken.push({ x, y });
    named[number] = true;
  }
  return named;
}
