"""Whole graphs: MUTAG (molecules) and PROTEINS, by the ten folds of Zhang et al. (2018)."""

import json
import shutil
import tarfile
import time
from pathlib import Path
from typing import Any

import saccade

PUBLISHED = {"MUTAG": "85.8", "PROTEINS": "75.5"}
"""DGCNN: Zhang et al. (2018), "An end-to-end deep learning architecture for graph classification", table 1."""

MOST = 64 << 20
"""Bytes of a file in the archive."""


def read(archive: Path) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The graphs with their labels, and the numbers of the test graphs of each fold."""
    name = archive.name.partition(".")[0]
    with tarfile.open(archive) as files:

        def text(path: str) -> str:
            member = files.getmember(f"{name}/{path}")
            found = files.extractfile(member)
            if found is None or member.size > MOST:
                raise ValueError(f"{archive}: {path} is not a file of a sensible size.")
            return found.read().decode()

        folds = [[int(n) for n in text(f"10fold_idx/test_idx-{fold}.txt").split()] for fold in range(1, 11)]
        lines = iter(text(f"{name}.txt").splitlines())
    graphs = []
    for _ in range(int(next(lines))):
        count, label = next(lines).split()
        rows = [next(lines).split() for _ in range(int(count))]
        # A node: its tag, the number of its neighbours, and the neighbours. Both ends name an edge: one is enough.
        near = [[int(n) for n in row[2 : 2 + int(row[1])]] for row in rows]
        edges = [[node, other] for node, found in enumerate(near) for other in found if node < other]
        graphs.append({"graph": {"edges": edges, "tags": [row[0] for row in rows]}, "label": label})
    return graphs, folds


def measured(archive: Path, fold: int, runs: Path, steps: int | None, again: bool) -> dict[str, Any]:
    """Trains on nine folds, of which a tenth decides when to stop, and tests on the other."""
    name = archive.name.partition(".")[0]
    folder = runs / f"{name}-{fold}"
    kept = folder.with_suffix(".json")
    if kept.exists() and not again:
        earlier: dict[str, Any] = json.loads(kept.read_text())
        return earlier
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier run
    graphs, folds = read(archive)
    held = set(folds[fold - 1])
    started = time.process_time()
    run = saccade.train(
        "graphs/graph",
        data={"train": [row for number, row in enumerate(graphs) if number not in held]},
        trainer={"seed": fold, "validate_examples": 0} | ({} if steps is None else {"max_steps": steps}),
        output=folder,
    )
    minutes = (time.process_time() - started) / 60
    accuracy = run.evaluate([graphs[number] for number in folds[fold - 1]]).figures["accuracy"].value
    print(f"{name}, fold {fold}: {accuracy:.1f} %", flush=True)
    result = {"fold": fold, "accuracy": accuracy, "minutes": minutes}
    kept.write_text(json.dumps(result))
    return result
