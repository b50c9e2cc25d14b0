/** Rows and columns as they are shown: pieces, words or sentences. */

import { lengthOf, type Axis, type SoundAxis, type TextAxis } from "./data";

export type Level = "pieces" | "words" | "sentences";

export interface Unit {
  readonly label: string;
  readonly pieces: readonly number[];
  readonly special: boolean;
  /** Where the model took it from, if not from its vocabulary. */
  readonly origin?: string;
  /** In running text: what stands between the unit before and this one. */
  readonly before: string;
}

export interface Units {
  readonly list: readonly Unit[];
  /** The unit of each piece, -1 if it is hidden. */
  readonly of: Int32Array;
}

/** Marks with which subword tokenisers write a space, or its absence. */
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
  const groups = axis.kind === "text" ? textUnits(axis, level) : placeNames(axis);
  const list = showSpecial ? groups : groups.filter((unit) => !unit.special);
  const of = new Int32Array(lengthOf(axis)).fill(-1);
  list.forEach((unit, number) => unit.pieces.forEach((piece) => (of[piece] = number)));
  return { list, of };
}

/** Patches by line and column, frames by the second in which they begin, nodes and visits by name. */
function placeNames(axis: Exclude<Axis, TextAxis>): Unit[] {
  return Array.from({ length: lengthOf(axis) }, (_, place) => {
    const unit = { pieces: [place], special: false, before: " " };
    if (axis.kind === "nodes" || axis.kind === "visits") return { ...unit, label: axis.names[place]! };
    if (axis.kind === "sound") return { ...unit, label: `${secondsAt(axis, place)} s` };
    const patch = place - axis.leading.length;
    const columns = axis.grid[1];
    const label = patch < 0 ? axis.leading[place]! : `${Math.floor(patch / columns) + 1},${(patch % columns) + 1}`;
    return { ...unit, label, special: patch < 0 };
  });
}

export function secondsAt(axis: SoundAxis, frame: number): string {
  return ((axis.seconds * frame) / axis.frames).toFixed(axis.seconds >= 0.01 * axis.frames ? 2 : 3);
}

function textUnits(axis: TextAxis, level: Level): Unit[] {
  const special = new Set(axis.special);
  const merged = level === "words" ? axis.words : level === "sentences" ? axis.sentences : null;
  const starts = new Map(merged?.map((pieces) => [Math.min(...pieces), pieces]));
  const covered = new Set(merged?.flat());
  // Once for all units: a text may have a hundred thousand words.
  const begins = level === "sentences" && axis.words ? new Set(axis.words.map((word) => word[0]!)) : null;
  const units: Unit[] = [];
  let spaces: number[] = [];
  const gap = spacing(axis);
  for (let place = 0; place < axis.pieces.length; place++) {
    const pieces = starts.get(place) ?? (covered.has(place) ? null : [place]);
    if (pieces === null) continue;
    // White space between words is no word: it counts with the word after it.
    if (merged && !covered.has(place) && !special.has(place) && /^\s+$/u.test(axis.pieces[place]!)) {
      spaces.push(place);
      continue;
    }
    units.push({
      label: starts.has(place) ? joined(axis.pieces, pieces, begins, level) : axis.pieces[place]!,
      pieces: [...spaces, ...pieces],
      special: pieces.every((piece) => special.has(piece)),
      origin: [...new Set(pieces.map((piece) => axis.origins?.[piece] ?? ""))].filter(Boolean).join("; "),
      before: units.length === 0 ? "" : spaces.map((space) => axis.pieces[space]!).join("") || gap(place),
    });
    spaces = [];
  }
  const last = units.pop();
  if (last) units.push({ ...last, pieces: [...last.pieces, ...spaces] });
  else for (const place of spaces) units.push({ label: axis.pieces[place]!, pieces: [place], special: false, before: "" });
  return units;
}

/** The space before a piece: from the pieces themselves if they carry any, otherwise by the rules of punctuation. */
function spacing(axis: TextAxis): (place: number) => string {
  const { pieces } = axis;
  const marked = pieces.some((piece) => /[\u0120\u2581]/u.test(piece));
  const spaced = pieces.some((piece) => /\s/u.test(piece));
  return (place) => {
    const piece = pieces[place]!;
    const former = pieces[place - 1] ?? "";
    if (axis.special.includes(place) || axis.special.includes(place - 1)) return " ";
    if (marked) return /^[\u0120\u2581]/u.test(piece) ? " " : "";
    if (spaced) return /^\s+/u.exec(piece)?.[0] ?? /\s+$/u.exec(former)?.[0] ?? "";
    return /^[.,;:!?%)\]}\u2019\u201d\u2026]+$/u.test(piece) || /^[([{\u201c\u2018]$/u.test(former) ? "" : " ";
  };
}

function joined(
  all: readonly string[],
  places: readonly number[],
  begins: ReadonlySet<number> | null,
  level: Level,
): string {
  const marked = places.some((place) => /[\u0120\u2581]/u.test(all[place]!));
  let text = "";
  places.forEach((place, number) => {
    const piece = all[place]!.replace(SPACE, " ").replace(CONTINUED, "");
    // A sentence is words with spaces between, unless the pieces bring their own.
    const apart = level === "sentences" && number > 0 && !marked && (begins === null || begins.has(place));
    text += (apart && !/^[\p{P}\s]/u.test(piece) ? " " : "") + piece;
  });
  return text.trim() || places.map((place) => all[place]!).join("");
}

/** Shows invisible characters as signs, and everything else verbatim. */
export function visible(text: string): string {
  if (text === "") return "\u2205";
  const edges = text.replace(/^ +| +$/g, (spaces) => "\u2423".repeat(spaces.length));
  return edges.replace(/\n/g, "\u21b5").replace(/\t/g, "\u21e5");
}

/** What to call the pieces of all texts: characters, subwords or tokens. */
export function namePieces(axes: readonly Axis[]): string {
  const texts = axes.filter((axis) => axis.kind === "text");
  const own = texts.flatMap((axis) => axis.pieces.filter((_, place) => !axis.special.includes(place)));
  if (own.length > 0 && own.every((piece) => characters(piece) <= 1)) return "Characters";
  return texts.some((axis) => axis.words?.some((word) => word.length > 1)) ? "Subwords" : "Tokens";
}

/** Counts letters; combining marks belong to the letter before them. */
function characters(text: string): number {
  return [...text.normalize("NFC")].filter((each) => !/\p{M}/u.test(each)).length;
}

export function hasLevel(axis: Axis, level: Level): boolean {
  if (level === "pieces") return true;
  return axis.kind === "text" && (level === "words" ? axis.words : axis.sentences) !== null;
}

export function hasSpecial(axis: Axis): boolean {
  return axis.kind === "text" ? axis.special.length > 0 : axis.kind === "image" && axis.leading.length > 0;
}
