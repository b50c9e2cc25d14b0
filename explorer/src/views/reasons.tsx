/** The words that a model picked, beside those that people marked. */

import type { AttentionMap, Axis } from "../data";
import { written } from "../reading";
import type { Unit } from "../units";

/** The colour of what people marked, in drawings; the style sheet has it, too. */
export const PEOPLE = "#2b8a3e";

/** For each unit whether it was picked, and whether people marked it; null where nobody did either. */
export interface Reasons {
  readonly picked: readonly boolean[] | null;
  readonly gold: readonly boolean[] | null;
}

export function reasonsOf(units: readonly Unit[], map: AttentionMap, axis: Axis): Reasons {
  const within = (places: readonly number[] | null): boolean[] | null => {
    if (places === null) return null;
    const known = new Set(places);
    return units.map((unit) => unit.pieces.some((piece) => known.has(piece)));
  };
  return { picked: within(map.picked), gold: within(axis.kind === "text" ? axis.gold : null) };
}

interface Props {
  reasons: Reasons;
  weights: Float32Array;
  units: readonly Unit[];
}

/** How many words were picked and marked, and how many of them are the same. */
export function Agreement({ reasons, weights, units }: Props) {
  const { picked, gold } = reasons;
  if (!picked && !gold) return null;
  const count = (which: (place: number) => boolean): number =>
    units.reduce((n, unit, place) => n + +(!unit.special && which(place)), 0);
  const chosen = count((place) => picked?.[place] === true);
  const marked = count((place) => gold?.[place] === true);
  const both = count((place) => picked?.[place] === true && gold?.[place] === true);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const inside = weights.reduce((sum, weight, place) => sum + (gold?.[place] ? weight : 0), 0);
  return (
    <span class="agreement">
      {picked && (
        <span>
          <bdi class="mark" data-picked="true">
            picked
          </bdi>{" "}
          by the model: <b>{chosen}</b> of {count(() => true).toLocaleString("en")}, which is all it answered from
        </span>
      )}
      {gold && (
        <span>
          <bdi class="mark" data-gold="true">
            marked
          </bdi>{" "}
          by people: <b>{marked}</b>
        </span>
      )}
      {picked && gold && (
        <span>
          both: <b>{both}</b> ({share(both, chosen)} of the picked, {share(both, marked)} of the marked)
        </span>
      )}
      {gold && !picked && total > 0 && (
        <span>
          weight on these: <b>{written(inside / total)}</b>
        </span>
      )}
    </span>
  );
}

function share(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "none";
}
