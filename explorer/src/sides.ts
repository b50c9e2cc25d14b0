/** What to call the two sides of a map. */

import type { AttentionMap } from "./data";
import type { Side } from "./state";

/** Input and output, or keys and queries if a sequence attends to itself. */
export function sideNames(map: AttentionMap): Record<Side, string> {
  return map.rows === map.cols ? { key: "key", query: "query" } : { key: "input", query: "output" };
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
