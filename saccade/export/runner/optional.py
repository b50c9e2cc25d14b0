"""Inputs that may be missing: None, or an empty text."""

import numpy as np

TYPES = {"tensor(int64)": np.int64, "tensor(float)": np.float32, "tensor(bool)": bool}


class InputReader:
    """Reads with another reader what is not missing.

    Args:
        inner: the other reader.
        role: the name of the input.
        graph: what takes it, and knows its shape.
    """

    def __init__(self, inner, role, graph):
        self.inner = inner
        names = {role: "values", f"{role}_mask": "mask"}
        self.given = {names[given.name]: given for given in graph.get_inputs() if given.name in names}

    def encode(self, value, most=None):
        nothing = value is None or (isinstance(value, str) and not value.strip())
        return None if nothing else self.inner.encode(value, most)

    def size(self, encoded):
        return 0 if encoded is None else self.inner.size(encoded)

    def names(self, encoded, count=None):
        return [] if encoded is None else self.inner.names(encoded, count)

    def pad(self, several):
        present = [number for number, each in enumerate(several) if each is not None]
        arrays = self.inner.pad([several[number] for number in present]) if present else self.nothing()
        found = {name: np.zeros((len(several), *array.shape[1:]), array.dtype) for name, array in arrays.items()}
        for name, array in arrays.items():
            found[name][present] = array
        return found

    def nothing(self):
        """A batch of no values, with one position where their number varies."""
        sizes = {name: [each if isinstance(each, int) else 1 for each in g.shape[1:]] for name, g in self.given.items()}
        return {name: np.zeros((0, *sizes[name]), TYPES[given.type]) for name, given in self.given.items()}
