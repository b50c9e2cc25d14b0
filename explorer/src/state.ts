/** The reader's choices. They are part of the address, so that a link shows the same. */

import { axesOf, lengthOf, type Axis, type Data } from "./data";
import type { HeadChoice } from "./matrix";
import type { Level } from "./units";

export type Side = "query" | "key";
export const SCALES = ["one", "map", "row"] as const;
export type Scale = (typeof SCALES)[number];
export type Theme = "auto" | "light" | "dark";
export const PALETTES = ["blues", "viridis", "cividis", "magma", "greys"] as const;
export type Palette = (typeof PALETTES)[number];

export interface Choice {
  readonly item: number;
  readonly map: number;
  readonly head: HeadChoice;
}

/** A place on an axis, by piece, so that it survives merging. */
export interface Pin {
  readonly side: Side;
  readonly piece: number;
}

export interface Cursor {
  readonly query: number;
  readonly key: number;
}

export interface State {
  readonly view: string;
  readonly panes: readonly [Choice] | readonly [Choice, Choice];
  readonly level: Level;
  readonly special: boolean;
  readonly threshold: number;
  readonly scale: Scale;
  readonly palette: Palette;
  readonly theme: Theme;
  readonly links: boolean;
  /** Heads next to each other, in views that can show several. */
  readonly split: boolean;
  readonly zoom: number;
  readonly pin: Pin | null;
  readonly cursor: Cursor | null;
}

const MOST_ZOOM = 1 << 16;

/** How far a map can be enlarged: until about thirty of its cells fill the screen. */
export function mostZoom(rows: Axis, cols: Axis): number {
  return Math.min(Math.max(32, 2 ** Math.ceil(Math.log2(Math.max(lengthOf(rows), lengthOf(cols)) / 30))), MOST_ZOOM);
}

export type Update = (change: Partial<State>) => void;

/** Whether a single row attends to a text: a label to its words. */
function isAlone(rows: Axis, cols: Axis): boolean {
  return lengthOf(rows) === 1 && cols.kind === "text";
}

/** The view that suits a map best. */
export function usualView(rows: Axis, cols: Axis): string {
  if (cols.kind === "image" || cols.kind === "nodes" || cols.kind === "visits") return cols.kind;
  return isAlone(rows, cols) ? "text" : "heat";
}

export function firstState(data: Data): State {
  const left = best(data, 0);
  const map = data.items[0]!.maps[left.map]!;
  const { rows, cols } = axesOf(data, map);
  const alone = isAlone(rows, cols);
  return {
    view: usualView(rows, cols),
    panes: data.beside && data.items.length > 1 ? [left, best(data, 1)] : [left],
    level: data.axes.some((axis) => axis.kind === "text" && axis.words !== null) ? "words" : "pieces",
    special: true,
    threshold: 0,
    // Relative colours make an untrained model look sharp. They are the default only for one row over a text, where
    // the heading gives the largest weight, and for pictures, which would be dark otherwise.
    scale: alone ? "map" : cols.kind === "image" ? "row" : "one",
    palette: "blues",
    theme: "auto",
    links: true,
    split: false,
    zoom: 1,
    pin: null,
    cursor: null,
  };
}

/** The last map, which is nearest to the output; of several with one row (words, then sentences) the most detailed. */
function best(data: Data, item: number): Choice {
  const { maps } = data.items[item]!;
  const count = (map: number, side: "rows" | "cols"): number => lengthOf(axesOf(data, maps[map]!)[side]);
  let chosen = maps.length - 1;
  for (let map = chosen - 1; map >= 0 && count(chosen, "rows") === 1; map--) {
    if (count(map, "rows") === 1 && count(map, "cols") > count(chosen, "cols")) chosen = map;
  }
  return { item, map: chosen, head: maps[chosen]!.heads > 1 ? "mean" : 0 };
}

export function toFragment(state: State, first: State): string {
  const parts = new URLSearchParams();
  const put = (name: string, value: string, usual: string): void => {
    if (value !== usual) parts.set(name, value);
  };
  put("view", state.view, first.view);
  put("show", written(state.panes[0]), written(first.panes[0]));
  put("beside", second(state), second(first));
  put("units", state.level, first.level);
  put("special", String(state.special), String(first.special));
  put("threshold", String(state.threshold), String(first.threshold));
  put("scale", state.scale, first.scale);
  put("palette", state.palette, first.palette);
  put("theme", state.theme, first.theme);
  put("links", String(state.links), String(first.links));
  put("split", String(state.split), String(first.split));
  put("zoom", String(state.zoom), String(first.zoom));
  if (state.pin) parts.set("pin", `${state.pin.side}.${state.pin.piece}`);
  if (state.cursor) parts.set("at", `${state.cursor.query}.${state.cursor.key}`);
  return parts.toString();
}

/** The view that a fragment asks for if it does not exist. */
export function unknownView(fragment: string, views: readonly string[]): string | null {
  const asked = new URLSearchParams(fragment.replace(/^#/, "")).get("view");
  return asked === null || views.includes(asked) ? null : asked;
}

/** Reads a fragment as far as it makes sense; everything else stays as in `first`. */
export function fromFragment(fragment: string, first: State, data: Data, views: readonly string[]): State {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const one = <T extends string>(name: string, choices: readonly T[], usual: T): T =>
    choices.find((choice) => choice === parts.get(name)) ?? usual;
  const number = (name: string, least: number, most: number, usual: number): number => {
    const value = Number.parseFloat(parts.get(name) ?? "");
    return Number.isFinite(value) ? Math.min(Math.max(value, least), most) : usual;
  };
  const flag = (name: string, usual: boolean): boolean => one(name, ["true", "false"], String(usual) as "true") === "true";
  const left = read(parts.get("show"), data) ?? first.panes[0];
  const right = parts.has("beside") ? read(parts.get("beside"), data) : (first.panes[1] ?? null);
  const pin = /^(query|key)\.(\d+)$/.exec(parts.get("pin") ?? "");
  const cursor = /^(\d+)\.(\d+)$/.exec(parts.get("at") ?? "");
  return {
    view: one("view", views, first.view),
    panes: right ? [left, right] : [left],
    level: one("units", ["pieces", "words", "sentences"], first.level),
    special: flag("special", first.special),
    threshold: number("threshold", 0, 1, first.threshold),
    scale: one("scale", SCALES, first.scale),
    palette: one("palette", PALETTES, first.palette),
    theme: one("theme", ["auto", "light", "dark"], first.theme),
    links: flag("links", first.links),
    split: flag("split", first.split),
    zoom: number("zoom", 1, MOST_ZOOM, first.zoom),
    pin: pin ? { side: pin[1] as Side, piece: Number(pin[2]) } : null,
    cursor: cursor ? { query: Number(cursor[1]), key: Number(cursor[2]) } : null,
  };
}

function second(state: State): string {
  return state.panes[1] ? written(state.panes[1]) : "none";
}

function written(choice: Choice): string {
  return `${choice.item}.${choice.map}.${choice.head}`;
}

function read(text: string | null, data: Data): Choice | null {
  const found = /^(\d+)\.(\d+)\.(\d+|mean|max)$/.exec(text ?? "");
  if (!found) return null;
  return fitting(
    {
      item: Number(found[1]),
      map: Number(found[2]),
      head: found[3] === "mean" || found[3] === "max" ? found[3] : Number(found[3]),
    },
    data,
  );
}

/** The nearest choice that exists. */
export function fitting(choice: Choice, data: Data): Choice {
  const item = Math.min(choice.item, data.items.length - 1);
  const maps = data.items[item]!.maps;
  const map = Math.min(choice.map, maps.length - 1);
  const heads = maps[map]!.heads;
  return { item, map, head: typeof choice.head === "number" ? Math.min(choice.head, heads - 1) : choice.head };
}
