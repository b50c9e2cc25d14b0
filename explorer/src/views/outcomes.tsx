/** The predicted label, its probability, and the labels it was chosen from. */

import type { Outcome } from "../data";

const MOST = 6;

export function Outcomes({ outcomes, otherwise }: { outcomes: readonly Outcome[]; otherwise: string }) {
  const [first, ...others] = outcomes;
  if (!first && otherwise === "") return null;
  if (!first) {
    return (
      <h2 class="verdict">
        <bdi>{otherwise}</bdi>
      </h2>
    );
  }
  const gold = outcomes.find((each) => each.gold);
  return (
    <div class="outcomes">
      <h2 class="verdict">
        <bdi>{first.label}</bdi>
        {first.probability !== null && <span class="number">{percent(first.probability)}</span>}
        {gold && (
          <span class="gold" data-right={first.gold}>
            {first.gold ? "✓ true label" : "✗ true label: "}
            {!first.gold && <bdi>{gold.label}</bdi>}
          </span>
        )}
      </h2>
      {others.length > 0 && (
        <p class="faint">
          {others.slice(0, MOST).map((each) => (
            <span class="other">
              <bdi>{each.label}</bdi> {each.probability !== null && percent(each.probability)}
            </span>
          ))}
          {others.length > MOST && `and ${others.length - MOST} more`}
        </p>
      )}
    </div>
  );
}

function percent(probability: number): string {
  if (probability > 0 && probability < 0.001) return "< 0.1 %";
  if (probability < 1 && probability > 0.999) return "> 99.9 %";
  return `${(100 * probability).toFixed(1)} %`;
}
