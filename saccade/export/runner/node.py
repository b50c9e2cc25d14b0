"""Nodes of the graph that the model has inside, by their names."""

import numpy as np


class InputReader:
    def __init__(self, about):
        self.about, self.places = about, {name: place for place, name in enumerate(about["names"])}

    def encode(self, name, most=None):
        if str(name) not in self.places:
            raise ValueError(f"The graph has no node {name!r:.60}.")
        return self.places[str(name)]

    def size(self, place):
        return 1

    def pad(self, several):
        return {"values": np.array(several, dtype=np.int64)}

    def seen(self, place, weights):
        """The weights of the neighbours, and their names."""
        near = self.about["neighbours"][self.about["starts"][place] : self.about["starts"][place + 1]] or [place]
        return weights[: len(near)], [self.about["names"][node] for node in near]
