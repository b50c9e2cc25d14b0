"""Pairs of nodes of the graph that the model has inside, by their names."""

import numpy as np

from .node import InputReader as Node


class InputReader(Node):
    def encode(self, pair, most=None):
        names = pair.split() if isinstance(pair, str) else list(pair)
        if len(names) != 2:
            raise ValueError(f"A link is two nodes, not {pair!r:.60}.")
        return [super(InputReader, self).encode(name) for name in names]

    def seen(self, places, weights):
        """The weights of the neighbours of both nodes, half of it for each, and their names."""
        found = [super(InputReader, self).seen(place, row) for place, row in zip(places, weights)]
        ends = [self.about["names"][place] for place in places]
        names = [f"{end} ← {name}" for end, (_, near) in zip(ends, found) for name in near]
        return np.concatenate([row for row, _ in found]) / 2, names
