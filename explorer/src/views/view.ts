/** Views register themselves by name; the page knows none of them in advance. */

import type { ComponentType, VNode } from "preact";
import type { Colours } from "../colour";
import type { AttentionMap, Axis, Data, Item } from "../data";
import type { Matrix } from "../matrix";
import type { Choice, State, Update } from "../state";

/** The input of a view: one item's map with the reader's choices. */
export interface Scene {
  readonly data: Data;
  readonly state: State;
  readonly update: Update;
  readonly choice: Choice;
  readonly item: Item;
  readonly map: AttentionMap;
  readonly rows: Axis;
  readonly cols: Axis;
  readonly matrix: Matrix;
  readonly colours: Colours;
  readonly ink: Ink;
  /** Room on the screen. */
  readonly width: number;
  readonly height: number;
}

/** The page's colours, for drawings, which style sheets do not reach. */
export interface Ink {
  readonly dark: boolean;
  readonly ground: string;
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly accent: string;
}

/** Views that write out every token show no more than this: a page with more would not be smooth. */
export const MOST_LISTED = 6000;

export interface View {
  readonly name: string;
  readonly title: string;
  /** Its purpose, in one sentence. */
  readonly hint: string;
  /** Whether it can show this map. */
  accepts(rows: Axis, cols: Axis, item: Item, data: Data): boolean;
  /** Whether it shows figures of all items at once, instead of the weights of one item per pane. */
  readonly whole?: boolean;
  /** Whether it can be zoomed, and whether it has a cell at the cursor to read. */
  readonly zooms?: boolean;
  readonly reads?: boolean;
  readonly Component: ComponentType<Scene>;
  /** The same as a standalone picture. */
  draw(scene: Scene): VNode | Promise<VNode>;
}

const registered: View[] = [];

export function registerView(view: View): void {
  if (registered.some((known) => known.name === view.name)) throw new Error(`Two views are called ${view.name}.`);
  registered.push(view);
}

export function allViews(): readonly View[] {
  return registered;
}
