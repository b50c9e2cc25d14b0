/** What to call the two sides of a map. */

import type { AttentionMap } from "./data";
import type { Side } from "./state";
import { visible } from "./units";

/** Their own names; input and output by default, or keys and queries if a sequence attends to itself. */
export function sideNames(map: AttentionMap): Record<Side, string> {
  if (map.sides) return { query: visible(map.sides[0]), key: visible(map.sides[1]) };
  return map.rows === map.cols ? { key: "key", query: "query" } : { key: "input", query: "output" };
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
