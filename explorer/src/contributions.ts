/** What codes add to the scores of outcomes, and what is left of an answer without some of them. */

import type { Contributions, VisitAxis } from "./data";

/** A code of a visit; those of the patient have the visit -1. */
export interface Code {
  readonly visit: number;
  readonly place: number;
  readonly name: string;
  /** What it adds to the score of each outcome. */
  readonly adds: readonly number[];
}

export function keyOf(code: Code): string {
  return `${code.visit}.${code.place}`;
}

/** All codes of a record: those of the patient first. */
export function codesOf(axis: VisitAxis, added: Contributions): readonly Code[] {
  const made = (visit: number, names: readonly string[], values: readonly (readonly number[])[]): Code[] =>
    names.map((name, place) => ({ visit, place, name, adds: values[place]! }));
  return [made(-1, axis.static, added.static), ...axis.codes.map((names, visit) => made(visit, names, added.codes[visit]!))].flat();
}

/** The probability of each outcome without the codes that were removed. Attention stays as it was. */
export function probabilities(added: Contributions, codes: readonly Code[], removed: ReadonlySet<string>): readonly number[] {
  const scores = added.bias.map((bias, outcome) =>
    codes.reduce((sum, code) => sum + (removed.has(keyOf(code)) ? 0 : code.adds[outcome]!), bias),
  );
  if (added.link === "logistic") return scores.map((score) => 1 / (1 + Math.exp(-score)));
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}
