/** What a view is. Views register themselves by name; the page knows none of them. */

import type { ComponentType, VNode } from "preact";
import type { Colours } from "../colour";
import type { AttentionMap, Axis, Data, Item } from "../data";
import type { Matrix } from "../matrix";
import type { Choice, State, Update } from "../state";

/** What a view is given: one item's map as the reader has chosen to see it. */
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

/** Colours of the page, for what is drawn rather than styled. */
export interface Ink {
  readonly dark: boolean;
  readonly ground: string;
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly accent: string;
}

export interface View {
  readonly name: string;
  readonly title: string;
  /** What it is good for, in one sentence. */
  readonly hint: string;
  /** Whether there is anything to see of this map. */
  accepts(rows: Axis, cols: Axis, item: Item, data: Data): boolean;
  /** Whether it shows figures of all items at once, and not the weights of one item a pane, as the others do. */
  readonly whole?: boolean;
  /** Whether it can be zoomed, and whether there is a cell under its cursor to read. */
  readonly zooms?: boolean;
  readonly reads?: boolean;
  readonly Component: ComponentType<Scene>;
  /** The same as a picture that stands alone. */
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
