"""Language models at equal parameters and equal processor minutes: LSTM, LSTMN, pointer sentinel and Transformer.

All read the corpus as one text, with the configuration `language/lstm` but for the model and the length of training,
which is as many steps as a processor makes in the given minutes. The validation text decides which weights are kept and
how a neural cache is mixed in; the test text is read once per model.
"""

import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import saccade
from reproductions.arguments import make_parser
from reproductions.report import earlier, markdown_table, publish
from saccade.fields import Text
from saccade.models import LSTMLanguageModel, LSTMNLanguageModel, PointerSentinel, TransformerLanguageModel
from saccade.tasks import LanguageModelling
from saccade.tasks.scored_texts import by_frequency
from saccade.training import Trainer

FOLDER = Path(__file__).resolve().parent
NAMES = {"lstm": "LSTM", "lstmn": "LSTMN", "pointer": "pointer sentinel", "transformer": "Transformer"}
CORPORA = {"ptb": "Penn Treebank", "wikitext2": "WikiText-2"}
PUBLISHED = {
    "ptb": {"lstm": "82.7 (medium LSTM)", "lstmn": "108 (unconfirmed)", "pointer": "70.9"},
    "wikitext2": {"lstm": "100.9 (zoneout)", "pointer": "80.8 (unconfirmed)"},
}
"""Perplexities of Zaremba et al. (2014), Cheng et al. (2016) and Merity et al. (2016), with 7 to 21 million parameters
and days of training: not to be compared with these."""

STREAMS, PIECE = 20, 35
VALID_WORDS = {"ptb": 10**9, "wikitext2": 50_000}
"""How much of the validation text is read: all of the Penn Treebank's."""
RARE = 100
"""Words that the training text has less often are rare ones."""


def main(arguments: list[str] | None = None) -> int:
    """Trains and tests each model that has not been, and writes the tables."""
    parser = make_parser(FOLDER, __doc__, models=NAMES, seed=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("PTB"), help="folder with ptb.zip or ptb.train.txt")
    parser.add_argument("--wikitext", type=Path, default=os.environ.get("WIKITEXT2"), help="folder of WikiText-2")
    parser.add_argument("--dim", type=int, default=100, help="of the LSTM; the others get as many parameters")
    parser.add_argument("--minutes", type=float, default=4.0, help="of one processor, for the steps of each training")
    parser.add_argument("--steps", type=int, help="as many updates for all, instead of minutes: a table of its own")
    given = parser.parse_args(arguments)
    corpora = {"ptb": given.data, "wikitext2": given.wikitext}
    if given.data is None and given.wikitext is None:
        print(
            "Skipped: this needs the Penn Treebank (--data or PTB: a folder with ptb.zip or ptb.train.txt etc.), or"
            " WikiText-2 (--wikitext or WIKITEXT2: one with wikitext-2.tar.gz or wiki.train.tokens etc.).",
            file=sys.stderr,
        )
        return 0
    torch.set_num_threads(1)
    results: dict[str, Any] = earlier(given.output)
    for corpus, folder in corpora.items():
        if folder is None:
            continue
        try:
            texts = read_corpus(corpus, folder)
        except FileNotFoundError as error:
            parser.error(str(error))
        updates = given.steps
        found = results.setdefault(f"{corpus}, {updates} updates" if updates else corpus, {})
        for name in given.models:
            folder = given.runs / (f"{corpus}-{updates}-{name}" if updates else f"{corpus}-{name}")
            found[name] = measured(given, corpus, name, texts, folder)
    ordered = {key: results[key] for key in sorted(results)}
    publish(given.output, results=ordered, table="\n".join(table(key, found) for key, found in ordered.items()))
    return 0


def read_corpus(corpus: str, folder: Path) -> dict[str, list[dict[str, str]]]:
    """The lines of `train`, `valid` and `test` that are not empty."""
    read = read_ptb if corpus == "ptb" else read_wikitext
    texts = {
        split: [line for line in map(str.strip, read(folder, split)) if line] for split in ("train", "valid", "test")
    }
    words = np.cumsum([len(line.split()) for line in texts["valid"]])
    texts["valid"] = texts["valid"][: 1 + int((words < VALID_WORDS[corpus]).sum())]
    return {split: [{"text": line} for line in lines] for split, lines in texts.items()}


def read_ptb(folder: Path, split: str) -> list[str]:
    """The lines of the Penn Treebank as Mikolov prepared it."""
    name = f"ptb.{split}.txt"
    if (folder / name).is_file():
        return (folder / name).read_text().splitlines()
    if (folder / "ptb.zip").is_file():
        with zipfile.ZipFile(folder / "ptb.zip") as archive:
            return archive.read(name).decode().splitlines()
    raise FileNotFoundError(f"There is no {name} and no ptb.zip in {folder}.")


def read_wikitext(folder: Path, split: str) -> list[str]:
    """The lines of WikiText-2, from its own files or from ids in an archive."""
    name = f"wiki.{split}.tokens"
    if (folder / name).is_file():
        return (folder / name).read_text().splitlines()
    if not (folder / "wikitext-2.tar.gz").is_file():
        raise FileNotFoundError(f"There is no {name} and no wikitext-2.tar.gz in {folder}.")
    with tarfile.open(folder / "wikitext-2.tar.gz") as archive:
        files = {
            name: archive.extractfile(f"wikitext-2/{name}")
            for name in ("type.info", f"{'validate' if split == 'valid' else split}.npy")
        }
        words, ids = (b"" if file is None else file.read() for file in files.values())
    names = words.decode().split("\n")
    tokens = [names[token] for token in np.load(io.BytesIO(ids), allow_pickle=False).tolist()]
    return " ".join(tokens).split("<eos>")


def model_of(name: str, dim: int) -> Any:
    """The class of a model and its arguments, for a size."""
    shared: dict[str, Any] = {"tied": True, "dropout": 0.1}
    if name == "lstm":
        return partial(LSTMLanguageModel, dim=dim, num_layers=2, **shared)
    if name == "pointer":
        return partial(PointerSentinel, dim=dim, num_layers=2, window=100, **shared)
    if name == "lstmn":
        return partial(LSTMNLanguageModel, dim=dim, num_layers=1, window=PIECE, **shared)
    heads = 4 if dim % 8 == 0 else 1  # rotary positions turn pairs of features
    layers: dict[str, Any] = {"num_heads": heads, "num_layers": 2, "feed_forward_dim": 2 * dim, "positions": "rotary"}
    return partial(TransformerLanguageModel, dim=dim, **layers, **shared)


def size(name: str, dim: int, vocab: int) -> int:
    """How many parameters a model of some size has."""
    with torch.device("meta"):
        return sum(each.numel() for each in model_of(name, dim)(vocab=vocab, causal=True).parameters())


def same_size(name: str, dim: int, vocab: int) -> int:
    """The size that gives a model the parameters of an LSTM of another size."""
    wanted = size("lstm", dim, vocab)
    step = 8 if name == "transformer" and dim >= 32 else 2 if name == "transformer" else 1
    sizes = range(step * max(1, dim // 2 // step), 2 * dim, step)
    return dim if name == "lstm" else min(sizes, key=lambda other: abs(size(name, other, vocab) - wanted))


def task_of() -> Any:
    """What all models learn."""
    text = {"class": "text", "tokeniser": "pretokenised", "max_length": PIECE}
    return partial(LanguageModelling, text=text, contiguous=True, metrics=["perplexity", "bits_per_byte", "accuracy"])


def measured(given: Any, corpus: str, name: str, texts: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """One model, trained and tested, unless its folder says that this was done."""
    noted = folder / "tested.json"
    if noted.is_file():
        found: dict[str, Any] = json.loads(noted.read_text())
        return found
    shutil.rmtree(folder, ignore_errors=True)
    task = LanguageModelling(text=Text(tokeniser="pretokenised", max_length=PIECE), contiguous=True)
    task.fit(texts["train"])
    dim = same_size(name, given.dim, task.text.tokeniser.size)
    model = model_of(name, dim)
    steps = given.steps or max(1, round(60.0 * given.minutes / step_seconds(task, name, model, texts["train"])))
    print(f"{CORPORA[corpus]}, {NAMES[name]}: dim {dim}, {steps:,} steps", flush=True)
    started = time.process_time()
    run = saccade.train(
        task=task_of(),
        model=model,
        data={"train": texts["train"], "valid": texts["valid"]},
        trainer={**trainer(name, steps), "validate_every": -(-steps // 4), "seed": given.seed},
        output=folder,
    )
    minutes = (time.process_time() - started) / 60.0
    tested = {**tests(run, texts), **cached(run, texts)}
    tokens = sum(len(task.rows(example)[0]["text"]) for example in texts["train"])
    result = {
        "dim": dim,
        "parameters": sum(each.numel() for each in run.model.parameters()),
        "steps": steps,
        "epochs": steps * STREAMS * PIECE / tokens,
        "minutes": minutes,
        **tested,
    }
    noted.write_text(json.dumps(result, indent=1) + "\n")
    return result


def trainer(name: str, steps: int) -> dict[str, Any]:
    """How a model is trained: a Transformer with smaller steps than recurrent models, the rest alike."""
    return {
        "max_steps": steps,
        "batch_tokens": STREAMS * PIECE,
        "learning_rate": 2e-3 if name == "transformer" else 4e-3,
        "schedule": {"class": "cosine", "warmup": 0.05},
        "optimiser": "adamw",
        "weight_decay": 1e-2,
        "clip_norm": 1.0,
        "validate_examples": 0,
        "log_every": 100,
    }


def step_seconds(task: LanguageModelling, name: str, model: Any, train: list[dict[str, str]]) -> float:
    """How long a processor takes for a step of training, without what is done once."""
    count, few = 30, train[:400]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for example in few for row in task.rows(example)]
        made = task.build(model.func, **model.keywords)
        seconds = []
        for steps, place in ((count // 3, "first"), (count, "second")):
            fitted = Trainer(**{**trainer(name, steps), "schedule": "constant"}, checkpoint_every=None)
            started = time.process_time()
            fitted.fit(task=task, model=made, train=rows, output=Path(folder) / place)
            seconds.append(time.process_time() - started)
    return max(1e-3, (seconds[1] - seconds[0]) / (count - count // 3))


def tests(run: Any, texts: Mapping[str, Any]) -> dict[str, Any]:
    """The perplexities of both other texts, and of rare and repeated words of the test text."""
    valid = run.evaluate(texts["valid"], metrics=["perplexity"]).figures["perplexity"].value
    answers = run.task.predict(run.model, texts["test"], score=True)
    figures = run.task.score(answers, texts["test"])
    read = [each.read for each in answers]
    classes = [0 if count < RARE else RARE for count in run.task.counts]
    split, whole = by_frequency(classes, read).rows["never"], by_frequency(run.task.counts, read)
    return {
        "valid": valid,
        "test": figures["perplexity"].value,
        "bits_per_byte": figures["bits_per_byte"].value,
        "accuracy": figures["accuracy"].value,
        "rare": split[1],
        "rare repeated": split[3],
        "rare new": split[4],
        "repeated": whole.rows["all"][3],
        "new": whole.rows["all"][4],
        "frequency": whole.as_json(),
    }


def cached(run: Any, texts: Mapping[str, Any]) -> dict[str, Any]:
    """The test perplexity with a neural cache, whose options are chosen on a part of the validation text."""
    part = texts["valid"][:400]
    choices = [
        {"cache_size": 500, "cache_weight": weight, "cache_flatness": flatness}
        for weight in (0.05, 0.15)
        for flatness in (0.3, 1.0)
    ]
    found = [run.evaluate(part, metrics=["perplexity"], **options).figures["perplexity"].value for options in choices]
    best = choices[found.index(min(found))]
    tested = run.evaluate(texts["test"], metrics=["perplexity"], **best)
    return {"cache": best, "test with cache": tested.figures["perplexity"].value}


def table(key: str, found: Mapping[str, Any]) -> str:
    """A row for each model."""
    corpus, _, updates = key.partition(", ")
    header = [
        ", ".join(filter(None, [CORPORA[corpus], updates])),
        "parameters",
        "dim",
        "passes over the text",
        "processor minutes",
        "valid",
        "test",
    ]
    header += ["test, repeated words", "test, rare words", "rare and repeated", "rare and new", "test with a cache"]
    header += ["published, not scaled down"]
    rows: list[list[object]] = []
    for name, one in found.items():
        row = [f"{NAMES[name]}, scaled", one["parameters"], one["dim"], one["epochs"], one["minutes"]]
        row += [one[key] for key in ("valid", "test", "repeated", "rare", "rare repeated", "rare new")]
        rows.append([*row, one["test with cache"], PUBLISHED[corpus].get(name, "")])
    return markdown_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
