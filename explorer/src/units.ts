/** Rows and columns as they are shown: pieces, or the words or sentences that they make up. */

import type { Axis } from "./data";

export type Level = "pieces" | "words" | "sentences";

export interface Unit {
  readonly label: string;
  readonly pieces: readonly number[];
  readonly special: boolean;
}

export interface Units {
  readonly list: readonly Unit[];
  /** The unit that each piece is in, -1 where it is hidden. */
  readonly of: Int32Array;
}

/** Marks of subword tokenisers that stand for a space or for its absence. */
const SPACE = /[\u0120\u2581]/gu;
const CONTINUED = /^##|@@$/u;

const made = new WeakMap<Axis, Map<string, Units>>();

export function unitsOf(axis: Axis, level: Level, showSpecial: boolean): Units {
  const key = `${level} ${showSpecial}`;
  const known = made.get(axis) ?? new Map<string, Units>();
  made.set(axis, known);
  const units = known.get(key) ?? makeUnits(axis, level, showSpecial);
  known.set(key, units);
  return units;
}

function makeUnits(axis: Axis, level: Level, showSpecial: boolean): Units {
  const groups: Unit[] = [];
  let length: number;
  if (axis.kind === "image") {
    const { leading, grid } = axis;
    length = leading.length + grid[0] * grid[1];
    for (let i = 0; i < length; i++) {
      const patch = i - leading.length;
      const label = patch < 0 ? leading[i]! : `${Math.floor(patch / grid[1]) + 1},${(patch % grid[1]) + 1}`;
      groups.push({ label, pieces: [i], special: patch < 0 });
    }
  } else {
    length = axis.pieces.length;
    const special = new Set(axis.special);
    const merged = level === "words" ? axis.words : level === "sentences" ? axis.sentences : null;
    const covered = new Set<number>();
    for (const pieces of merged ?? []) {
      for (const piece of pieces) covered.add(piece);
      groups.push({
        label: joined(axis.pieces, pieces, axis.words, level),
        pieces,
        special: pieces.every((piece) => special.has(piece)),
      });
    }
    for (let i = 0; i < length; i++) {
      if (!covered.has(i)) groups.push({ label: axis.pieces[i]!, pieces: [i], special: special.has(i) });
    }
    groups.sort((a, b) => a.pieces[0]! - b.pieces[0]!);
  }
  const list = showSpecial ? groups : groups.filter((unit) => !unit.special);
  const of = new Int32Array(length).fill(-1);
  list.forEach((unit, number) => unit.pieces.forEach((piece) => (of[piece] = number)));
  return { list, of };
}

function joined(
  all: readonly string[],
  places: readonly number[],
  words: readonly (readonly number[])[] | null,
  level: Level,
): string {
  const starts = new Set(words?.map((word) => word[0]));
  const marked = places.some((place) => /[\u0120\u2581]/u.test(all[place]!));
  let text = "";
  places.forEach((place, number) => {
    const piece = all[place]!.replace(SPACE, " ").replace(CONTINUED, "");
    // A sentence is words with spaces between, unless the pieces bring their own.
    const apart = level === "sentences" && number > 0 && !marked && (words === null || starts.has(place));
    text += (apart && !/^[\p{P}\s]/u.test(piece) ? " " : "") + piece;
  });
  return text.trim() || places.map((place) => all[place]!).join("");
}

/** What cannot be seen is shown by a sign; everything else is shown as itself. */
export function visible(text: string): string {
  if (text === "") return "\u2205";
  const edges = text.replace(/^ +| +$/g, (spaces) => "\u2423".repeat(spaces.length));
  return edges.replace(/\n/g, "\u21b5").replace(/\t/g, "\u21e5");
}

/** What the pieces of all texts are: characters, parts of words, or whatever else the model reads. */
export function namePieces(axes: readonly Axis[]): string {
  const texts = axes.filter((axis) => axis.kind === "text");
  const own = texts.flatMap((axis) => axis.pieces.filter((_, place) => !axis.special.includes(place)));
  if (own.length > 0 && own.every((piece) => characters(piece) <= 1)) return "Characters";
  return texts.some((axis) => axis.words?.some((word) => word.length > 1)) ? "Subwords" : "Tokens";
}

/** Marks belong to the letter before them. */
function characters(text: string): number {
  return [...text.normalize("NFC")].filter((each) => !/\p{M}/u.test(each)).length;
}

export function hasLevel(axis: Axis, level: Level): boolean {
  if (level === "pieces") return true;
  return axis.kind === "text" && (level === "words" ? axis.words : axis.sentences) !== null;
}

export function hasSpecial(axis: Axis): boolean {
  return axis.kind === "text" ? axis.special.length > 0 : axis.leading.length > 0;
}
