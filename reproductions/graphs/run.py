"""Graph attention networks: Cora and Pubmed, missing links of Cora, DictionaryLookup, MUTAG and PROTEINS.

The configurations `graphs/gat`, `graphs/graph` and `graphs/link-prediction`, by default as they are shipped.
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from reproductions.arguments import make_parser
from reproductions.graphs import dictionary, links, molecules, nodes
from reproductions.report import markdown_table, publish

FOLDER = Path(__file__).resolve().parent
PARTS = ("cora", "pubmed", "dictionary", "MUTAG", "PROTEINS", "links")
SEEDS, LINKS = list(range(1, 11)), [1, 2, 3]
"""Of the parts Cora and Pubmed, and of `links`, unless others are given."""


def main(arguments: list[str] | None = None) -> int:
    """Trains and tests everything that is asked for and has its data, and writes the table."""
    parser = make_parser(FOLDER, __doc__)
    data = os.environ.get("SACCADE_DATA")
    parser.add_argument("--data", type=Path, default=data, help="folder with planetoid/ and tu-graphs/")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", help="of Cora and Pubmed; by default 10, and 3 of links")
    parser.add_argument("--scores", nargs="+", choices=["gat", "gatv2"], default=["gat", "gatv2"], help="on Cora")
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(1, 11)), help="of MUTAG and PROTEINS")
    parser.add_argument("--steps", type=int, help="the most updates; by default, as in the configuration")
    parser.add_argument("--keys", type=int, default=10, help="of DictionaryLookup")
    parser.add_argument("--graphs", type=int, default=4_000, help="of DictionaryLookup")
    parser.add_argument("--epochs", type=int, default=15, help="of DictionaryLookup, at most")
    parser.add_argument("--reuse", action="store_true", help="take results that are in the folder of the runs already")
    parser.add_argument("--table", action="store_true", help="train nothing: only the table of such results")
    given = parser.parse_args(arguments)
    given.runs.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    rows: list[list[object]] = []
    for part in given.parts:
        path = _data(part, given.data)
        if path is not None and not path.is_file():
            print(f"Skipped {part}: there is no {path}. Set --data or SACCADE_DATA.", file=sys.stderr)
            continue
        for name, found, row in _measured(part, path, given):
            results[name] = found
            rows.append(row)
    if not rows:
        return 0
    header = ["what", "model", "test accuracy, %", "runs", "processor minutes per run", "published"]
    publish(given.output, results=results, table=markdown_table(header, rows))
    return 0


def _data(part: str, folder: Path | None) -> Path | None:
    if part == "dictionary":
        return None
    if part == "links":
        part = "cora"
    inner = f"planetoid/{part}.npz" if part in nodes.SETTINGS else f"tu-graphs/{part}.tar.gz"
    return Path(inner) if folder is None else folder / inner


def _measured(part: str, path: Path | None, given: argparse.Namespace) -> list[tuple[str, Any, list[object]]]:
    """The results of a part by name, each with its row of the table."""
    found: list[tuple[str, Any, list[object]]] = []
    again = not (given.reuse or given.table)

    def wanted(numbers: list[int], name: str) -> list[int]:
        return [n for n in numbers if not given.table or (given.runs / f"{name}-{n}.json").exists()]

    if path is None:
        for score in ("gat", "gatv2"):
            options = {"k": given.keys, "graphs": given.graphs, "epochs": given.epochs, "seed": 1, "again": again}
            result = dictionary.measured(score, kept=given.runs / f"dictionary-{score}.json", **options)
            shown = f"{result['test']:.1f} (training {result['train']:.1f})"
            row = [
                f"DictionaryLookup, {result['k']} keys",
                f"{score}, 1 head",
                shown,
                1,
                "",
                dictionary.PUBLISHED[score],
            ]
            found.append((f"dictionary {score}", result, row))
    elif part in nodes.SETTINGS:
        for score in given.scores if part == "cora" else given.scores[:1]:
            seeds = wanted(given.seeds or SEEDS, f"{part}-{score}")
            several = [nodes.measured(part, score, seed, path, given.runs, given.steps, again) for seed in seeds]
            published = nodes.PUBLISHED.get((part, score), "")
            if several:
                found.append((f"{part} {score}", several, _row(part.title(), score, several, published)))
    elif part == "links":
        seeds = wanted(given.seeds or LINKS, "cora-links")
        several = [links.measured("cora", seed, path, given.runs, given.steps, again) for seed in seeds]
        if several:
            found.append(
                (part, several, _row("Cora, missing links (AUROC)", "gatv2", several, links.PUBLISHED["cora"]))
            )
    else:
        folds = wanted(given.folds, part)
        several = [molecules.measured(path, fold, given.runs, given.steps, again) for fold in folds]
        published = f"{molecules.PUBLISHED[part]} (DGCNN)"
        if several:
            found.append((part, several, _row(f"{part}, by folds", "gatv2", several, published)))
    return found


def _row(what: str, model: str, several: list[dict[str, Any]], published: str) -> list[object]:
    accuracies = [each["accuracy"] for each in several]
    spread = stdev(accuracies) if len(several) > 1 else 0.0
    minutes = fmean(each["minutes"] for each in several)
    return [what, model, f"{fmean(accuracies):.1f} ± {spread:.1f}", len(several), minutes, published]


if __name__ == "__main__":
    sys.exit(main())
