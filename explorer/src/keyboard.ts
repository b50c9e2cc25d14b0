/** Everything that can be clicked has a key. */

import { axesOf, type Data } from "./data";
import type { Matrix } from "./matrix";
import { cursorIn } from "./reading";
import { fitting, mostZoom, SCALES, type Choice, type State, type Update } from "./state";
import { hasLevel, type Level } from "./units";
import type { View } from "./views/view";

export const KEYS: readonly (readonly [string, string])[] = [
  ["↑ ↓", "previous, next row (query)"],
  ["← →", "previous, next column (key)"],
  ["Home End", "first, last column"],
  ["Enter", "pin the row at the cursor; Shift+Enter pins the column"],
  ["Esc", "unpin, then clear the cursor"],
  ["[ ]", "previous, next layer"],
  [", .", "previous, next head"],
  ["a", "mean of all heads, max of all heads, one head"],
  ["u", "subwords, words, sentences"],
  ["s", "show or hide special tokens"],
  ["l", "show or hide known links"],
  ["c", "colour scale: 0 to 1, map, row"],
  ["h", "heads side by side, in views that can show several"],
  ["+ −", "zoom in, zoom out"],
  ["b", "two items or heads side by side"],
  ["d", "dark or light colours"],
  ["1 … 9", "choose a view"],
  ["?", "this help"],
];

interface Context {
  data: Data;
  state: State;
  update: Update;
  matrix: Matrix | null;
  views: readonly View[];
  help: boolean;
  setHelp: (open: boolean) => void;
}

export function onKey(event: KeyboardEvent, context: Context): void {
  if (event.ctrlKey || event.metaKey || event.altKey || context.help) return;
  const target = event.target instanceof Element ? event.target : null;
  // Fields keep the keys that they use themselves.
  if (target?.closest("select, input, textarea")) return;
  const pressing = target?.closest("button, summary, a") && (event.key === "Enter" || event.key === " ");
  if (pressing) return;
  const change = changeFor(event, context);
  if (!change) return;
  event.preventDefault();
  change();
}

function changeFor(event: KeyboardEvent, context: Context): (() => void) | null {
  const { data, state, update, views, setHelp } = context;
  const { key } = event;
  const moved = move(event, context);
  if (moved) return moved;
  const left = fitting(state.panes[0], data);
  const item = data.items[left.item]!;
  const heads = item.maps[left.map]!.heads;
  const choose = (change: Partial<Choice>): void => {
    const next = fitting({ ...left, ...change }, data);
    update({ panes: state.panes[1] ? [next, state.panes[1]] : [next] });
  };
  const around = <T>(list: readonly T[], now: T): T => list[(list.indexOf(now) + 1) % list.length]!;
  switch (key) {
    case "Escape":
      return state.pin ? () => update({ pin: null }) : () => update({ cursor: null });
    case "[":
    case "]":
      return () => choose({ map: (left.map + (key === "]" ? 1 : -1) + item.maps.length) % item.maps.length });
    case ",":
    case ".": {
      const now = typeof left.head === "number" ? left.head : key === "." ? -1 : heads;
      return () => choose({ head: (now + (key === "." ? 1 : -1) + heads) % heads });
    }
    case "a":
      return () => choose({ head: left.head === "mean" ? "max" : left.head === "max" ? 0 : "mean" });
    case "u": {
      const levels = (["pieces", "words", "sentences"] as const).filter((level: Level) =>
        data.axes.some((axis) => hasLevel(axis, level)),
      );
      return () => update({ level: around(levels, state.level) });
    }
    case "s":
      return () => update({ special: !state.special });
    case "l":
      return () => update({ links: !state.links });
    case "h":
      return () => update({ split: !state.split });
    case "c":
      return () => update({ scale: around(SCALES, state.scale) });
    case "+":
    case "=": {
      const axes = axesOf(data, data.items[left.item]!.maps[left.map]!);
      return () => update({ zoom: rounded(Math.min(state.zoom * Math.SQRT2, mostZoom(axes.rows, axes.cols))) });
    }
    case "-":
      return () => update({ zoom: rounded(Math.max(state.zoom / Math.SQRT2, 1)) });
    case "b": {
      const other = data.items.length > 1 ? { ...left, item: (left.item + 1) % data.items.length } : { ...left, head: 0 };
      return () => update({ panes: state.panes[1] ? [left] : [left, fitting(other, data)] });
    }
    case "d": {
      const dark = document.documentElement.dataset["theme"] === "dark";
      return () => update({ theme: dark ? "light" : "dark" });
    }
    case "?":
      return () => setHelp(true);
    default: {
      const view = /^[1-9]$/.test(key) ? views[Number(key) - 1] : undefined;
      return view ? () => update({ view: view.name }) : null;
    }
  }
}

const STEPS: Record<string, readonly [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

function move(event: KeyboardEvent, { state, update, matrix }: Context): (() => void) | null {
  if (!matrix || matrix.rows.list.length === 0 || matrix.cols.list.length === 0) return null;
  const place = cursorIn(matrix, state.cursor);
  if (event.key === "Enter") {
    if (!place) return null;
    const side = event.shiftKey ? "key" : "query";
    const unit = event.shiftKey ? matrix.cols.list[place.col]! : matrix.rows.list[place.row]!;
    const same = state.pin?.side === side && unit.pieces.includes(state.pin.piece);
    return () => update({ pin: same ? null : { side, piece: unit.pieces[0]! } });
  }
  const step = STEPS[event.key];
  if (!step) return null;
  const within = (value: number, length: number): number => Math.min(Math.max(value, 0), length - 1);
  const row = place ? within(place.row + step[0], matrix.rows.list.length) : 0;
  const col = place ? within(place.col + step[1], matrix.cols.list.length) : 0;
  return () =>
    update({ cursor: { query: matrix.rows.list[row]!.pieces[0]!, key: matrix.cols.list[col]!.pieces[0]! } });
}

/** Without the noise of computing, for the address. */
function rounded(zoom: number): number {
  return Number(zoom.toPrecision(4));
}
