"""Runs an exported model with only onnxruntime and numpy: Model(folder).predict(["a text"]).

Next to this file are a module for each kind of input that the model reads, and one for its kind of answer.
"""

import importlib
import json
from itertools import islice
from pathlib import Path

import numpy as np

AHEAD = 16  # batches that are sorted by length together


class Model:
    """Gives the same answers as the run that it was exported from.

    Args:
        folder: of the export.
        threads: of onnxruntime; 0 for all cores.
    """

    def __init__(self, folder, threads=0):
        import onnxruntime

        self.about = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.graphs = {
            name: onnxruntime.InferenceSession(str(Path(folder) / f"{name}.onnx"), options, ["CPUExecutionProvider"])
            for name in self.about["graphs"]
        }
        self.takes = {name: [given.name for given in graph.get_inputs()] for name, graph in self.graphs.items()}
        self.gives = {name: [given.name for given in graph.get_outputs()] for name, graph in self.graphs.items()}
        self.readers = {role: part(about["kind"]).InputReader(about) for role, about in self.about["inputs"].items()}
        for role, about in self.about["inputs"].items():
            if about.get("optional") and "encoder" in self.graphs:
                self.readers[role] = part("optional").InputReader(self.readers[role], role, self.graphs["encoder"])
        self.task = part(self.about["task"]["kind"]).Answerer(self, self.about["task"])

    def run(self, name, given):
        """The outputs of a graph by name."""
        found = self.graphs[name].run(None, {key: given[key] for key in self.takes[name]})
        return dict(zip(self.gives[name], found))

    def predict(self, inputs, batch_size=64, **options):
        """A dictionary for each input: `answer`, `score`, `weights` with the names of its `queries` and `keys`, ...

        Args:
            inputs: values, or dictionaries of values by name for a model with several inputs.
            batch_size: how many are answered together; inputs of similar size share a batch.
            options: of the task.
        """
        return list(self.stream(inputs, batch_size, **options))

    def stream(self, inputs, batch_size=64, **options):
        """The same as a stream, for any number of inputs: only AHEAD batches are in memory at a time."""
        inputs, empty = iter(inputs), self.task.empty_answer
        while examples := [self.example(value) for value in islice(inputs, AHEAD * batch_size)]:
            found = {}
            if empty is not None:
                looked = {"weights": np.zeros((0, 1)), "queries": [], "keys": ["</s>"]}
                found = {number: {**empty, **looked} for number, each in enumerate(examples) if is_empty(each)}
            rows = {number: self.task.encode(each) for number, each in enumerate(examples) if number not in found}
            order = sorted(rows, key=lambda number: -self.task.size(rows[number]))
            for start in range(0, len(order), batch_size):
                numbers = order[start : start + batch_size]
                found.update(zip(numbers, self.task.answer([rows[number] for number in numbers], **options)))
            yield from (found[number] for number in range(len(examples)))

    def example(self, value):
        roles = list(self.readers)
        absent = {role: None for role, about in self.about["inputs"].items() if about.get("optional")}
        if isinstance(value, dict) and set(roles) >= set(value) >= set(roles) - set(absent) and value:
            return {**absent, **value}
        if len(roles) > 1:
            raise ValueError(f"This model reads {' and '.join(roles)}: give a dictionary of these, not {value!r:.60}.")
        return {roles[0]: value}


class Answering:
    """Common base of all kinds of answers, which may override `encode` and `answer`."""

    def __init__(self, model, about):
        self.model, self.about = model, about

    def encode(self, example):
        most = self.about["most"]
        return {
            role: reader.encode(example[role], most[role] if isinstance(most, dict) else most)
            for role, reader in self.model.readers.items()
        }

    def size(self, row):
        return sum(reader.size(row[role]) for role, reader in self.model.readers.items())

    empty_answer = None
    """The answer to an empty input; None if the model has to answer such inputs too."""

    def arrays(self, rows):
        """What a graph takes: the values of an input under its name, and its mask and others beside them."""
        given = {}
        for role, reader in self.model.readers.items():
            arrays = reader.pad([row[role] for row in rows])
            given.update({role if name == "values" else f"{role}_{name}": each for name, each in arrays.items()})
        return given

    def looked(self, found, row, number):
        """The weights that decided an answer, with the names of their queries and keys; nothing without attention."""
        looks = self.model.about["looks"]
        if looks is None:
            return {}
        weights, keys = self.model.readers[looks["keys"]].seen(row[looks["keys"]], found["looks"][number])
        if looks["queries"] is None:
            picked = {"picked": np.flatnonzero(found["picked"][number]).tolist()} if "picked" in found else {}
            return {"weights": weights[None], "keys": keys, **picked}
        queries = self.model.readers[looks["queries"]].names(row[looks["queries"]])
        return {"weights": weights[: len(queries)], "queries": queries, "keys": keys}


def part(kind):
    return importlib.import_module(f"{__name__}.{kind}")


def is_empty(example):
    """Whether an example has nothing in any of its inputs."""
    return all(value is None or (isinstance(value, str) and not value.strip()) for value in example.values())


def padded(several, fill=0):
    """Lists of different lengths as one array, and its mask."""
    ids = np.full((len(several), max(map(len, several))), fill, dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=bool)
    for row, each in enumerate(several):
        ids[row, : len(each)], mask[row, : len(each)] = each, True
    return ids, mask


def log_softmax(logits, axis=-1):
    shifted = logits - logits.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
