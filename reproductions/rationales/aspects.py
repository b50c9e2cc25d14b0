"""Made-up reviews of three aspects, each of which three neighbouring words decide.

A word that names the aspect stands before them. All aspects have the same good and bad words, so that only the context
says which of them count.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from reproductions.report import markdown_table
from saccade.interpretation.plots import plot_lines
from saccade.tasks import Answer

ASPECTS = ("appearance", "smell", "palate")
CUES = 5  # words that name an aspect
WORDS = 20  # good ones, and as many bad ones
FILLERS = 200
SPAN = 3
SHORTEST, LONGEST = 24, 36
AGREE = 0.75  # how often the label of an aspect is that of the whole review
MIXED = 0.5  # how often one of the three words speaks against the other two


def reviews(count: int, seed: int) -> list[dict[str, Any]]:
    """Texts with a label and a span (start, end) for each aspect."""
    chance = random.Random(seed)
    return [_review(chance) for _ in range(count)]


def _review(chance: random.Random) -> dict[str, Any]:
    overall = chance.random() < 0.5
    length = chance.randint(SHORTEST, LONGEST) - len(ASPECTS) * SPAN
    words: list[list[str]] = [[f"filler{chance.randrange(FILLERS)}"] for _ in range(length)]
    places = chance.sample(range(length), len(ASPECTS))
    labels = {}
    for aspect, place in zip(ASPECTS, places, strict=True):
        good = overall if chance.random() < AGREE else not overall
        votes = [good] * SPAN
        if chance.random() < MIXED:
            votes[chance.randrange(SPAN)] = not good
        said = [f"{'good' if vote else 'bad'}{chance.randrange(WORDS)}" for vote in votes]
        words[place] = [f"{aspect}{chance.randrange(CUES)}", *said]
        labels[aspect] = "good" if good else "bad"
    starts = [sum(len(each) for each in words[:place]) for place in range(length)]
    begins = {aspect: starts[place] + 1 for aspect, place in zip(ASPECTS, places, strict=True)}
    spans = {aspect: (start, start + SPAN) for aspect, start in begins.items()}
    return {"text": " ".join(word for several in words for word in several), "labels": labels, "spans": spans}


def examples(several: Sequence[dict[str, Any]], aspect: str) -> list[dict[str, str]]:
    """The texts with the labels of one aspect."""
    return [{"text": review["text"], "label": review["labels"][aspect]} for review in several]


def measure(answers: Sequence[Answer], several: Sequence[dict[str, Any]], aspect: str) -> dict[str, Any]:
    """Accuracy, and how many of the words that a model picked, or gave the most weight, are those that decide.

    `top` is the precision of as many words as decide, those with the largest weights; `curve` that of 1, 2, ... words.
    """
    right = fmean(answer.value == review["labels"][aspect] for answer, review in zip(answers, several, strict=True))
    kept, picked, hits, curve = [], 0, 0, []
    for answer, review in zip(answers, several, strict=True):
        attention, count = answer.attention, len(review["text"].split())
        assert attention is not None
        wanted = range(*review["spans"][aspect])
        order = sorted(range(count), key=lambda place: -float(attention.weights[0, place]))
        curve.append([place in wanted for place in order[:SHORTEST]])
        if attention.picked is not None:
            own = [place for place in attention.picked if place < count]
            kept.append(len(own) / count)
            picked += len(own)
            hits += sum(place in wanted for place in own)
    found = [100.0 * fmean(sum(row[:n]) / n for row in curve) for n in range(1, SHORTEST // 2 + 1)]
    result: dict[str, Any] = {"accuracy": 100.0 * right, "top": found[SPAN - 1], "curve": found}
    if kept:
        result |= {
            "kept": 100.0 * fmean(kept),
            "precision": 100.0 * hits / max(picked, 1),
            "recall": 100.0 * hits / (SPAN * len(several)),
        }
    return result


def true_share(several: Sequence[dict[str, Any]]) -> float:
    """The share of words, in percent, that decide about one aspect."""
    return 100.0 * fmean(SPAN / len(review["text"].split()) for review in several)


def mean_over_aspects(of_model: Mapping[str, Any], split: str = "test") -> dict[str, Any]:
    """The means of the figures of a model over the three aspects."""
    several = [of_aspect[split] for of_aspect in of_model.values()]
    means: dict[str, Any] = {
        key: fmean(each[key] for each in several) for key in several[0] if isinstance(several[0][key], float)
    }
    return means | {"curve": [fmean(column) for column in zip(*(each["curve"] for each in several), strict=True)]}


def at_true_share(found: Mapping[str, Any]) -> str:
    """The model of the sweep whose share of words kept on validation reviews is closest to the true one."""
    swept = [name for name in found["models"] if name.startswith("picks, sparsity")]
    return min(
        swept, key=lambda name: abs(mean_over_aspects(found["models"][name], "valid")["kept"] - found["true_share"])
    )


def table(found: Mapping[str, Any]) -> str:
    """A row for each model."""
    header = ["model", "words kept, %", "precision of what is kept, %", "its recall, %"]
    header += [f"precision of the top {SPAN}, %", "accuracy, %", "processor seconds per model"]
    chosen = at_true_share(found)
    rows = []
    for name, of_model in found["models"].items():
        r = mean_over_aspects(of_model)
        kept = [r.get(key, "all" if key == "kept" else "") for key in ("kept", "precision", "recall")]
        seconds = round(60 * fmean(of_aspect["minutes"] for of_aspect in of_model.values()))
        rows.append([f"**{name}**" if name == chosen else name, *kept, r["top"], r["accuracy"], seconds])
    note = f"\nThe words that decide are {found['true_share']:.1f} % of a review.\n"
    return markdown_table(header, rows) + note


def plot(found: Mapping[str, Any], output: Path) -> None:
    """Accuracy and precision against the share of words kept."""
    swept = sorted(
        (mean_over_aspects(of_model) for name, of_model in found["models"].items() if "sparsity" in name),
        key=lambda r: r["kept"],
    )
    shares = [r["kept"] for r in swept]
    share_of_one = found["true_share"] / SPAN
    lines = {
        "picks: precision": (shares, [r["precision"] for r in swept]),
        "picks: accuracy": (shares, [r["accuracy"] for r in swept]),
    }
    for name in (name for name in found["models"] if name.startswith("attention")):
        curve = mean_over_aspects(found["models"][name])["curve"]
        lines[f"{name}: precision"] = ([share_of_one * n for n in range(1, len(curve) + 1)], curve)
    plot_lines(lines, output / "aspects.png", x="share of words kept, %", y="%")
