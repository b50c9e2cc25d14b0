"""Small graphs: {"edges": [[0, 1], ...]} with tags, features and names of nodes and edges."""

import json

import numpy as np

FURTHEST = 1e6  # standard deviations
KNOWN = ("nodes", "edges", "tags", "edge_tags", "names", "features", "edge_features")


class InputReader:
    def __init__(self, about):
        self.about = about

    def encode(self, value, most=None):
        value = json.loads(value) if isinstance(value, str) else value
        if not isinstance(value, dict) or "edges" not in value or set(value) - set(KNOWN):
            raise ValueError(f"A graph is an object with edges, not {value!r:.60}.")
        edges = np.asarray(value["edges"], dtype=np.int64).reshape(-1, 2)
        given = {len(value[name]) for name in ("tags", "features", "names") if value.get(name) is not None}
        given |= {value["nodes"]} if value.get("nodes") is not None else set()
        nodes = given.pop() if given else int(edges.max(initial=-1)) + 1
        if given or nodes < 1 or edges.min(initial=0) < 0 or edges.max(initial=0) >= nodes:
            raise ValueError(
                "Number the nodes of a graph from 0, and give one tag, name and list of features for each."
            )
        x = self.numbers(value, "tags", "features", nodes)
        if self.about["degrees"]:
            x = np.concatenate([x, np.log1p(np.bincount(edges.ravel(), minlength=nodes))[:, None]], axis=1)
        elif not x.shape[1]:
            x = np.ones((nodes, 1))
        tags = value.get("tags")
        names = value.get("names") or [str(n) if tags is None else f"{tags[n]} {n}" for n in range(nodes)]
        e = self.numbers(value, "edge_tags", "edge_features", len(edges))
        return {"x": x, "names": [str(name) for name in names], "near": self.neighbours(edges, nodes), "e": e}

    def numbers(self, value, tags, features, count):
        """(count, width): what the model sees of the nodes or edges."""
        kinds = np.zeros((count, len(self.about[tags])))
        places = {tag: place for place, tag in enumerate(self.about[tags])}
        for row, tag in enumerate(value.get(tags) or ()):
            if str(tag) in places:
                kinds[row, places[str(tag)]] = 1
        if not self.about[features]:
            return kinds
        mean, spread = np.asarray(self.about[features])
        rows = np.zeros((count, len(mean)))
        if value.get(features):
            given = np.asarray(value[features], dtype=float).reshape(count, -1)
            if given.shape != rows.shape:
                raise ValueError(f"This model reads {len(mean)} {features}, not {given.shape[1]}.")
            rows = np.clip((given - mean) / spread, -FURTHEST, FURTHEST)
        return np.concatenate([kinds, rows], axis=1)

    def neighbours(self, edges, nodes):
        """For each node a dictionary: from the nodes that it attends to, in order, to the numbers of the edges."""
        found = [{} for _ in range(nodes)]
        for number, (a, b) in enumerate(edges.tolist()):
            found[b].setdefault(a, number)
        for number, (a, b) in enumerate([] if self.about["directed"] else edges.tolist()):
            found[a].setdefault(b, number)
        for node in range(nodes if self.about["self_loops"] else 0):
            found[node].setdefault(node, None)
        return [dict(sorted(near.items())) for near in found]

    def size(self, encoded):
        return len(encoded["x"])

    def seen(self, encoded, weights):
        return weights[..., : len(encoded["names"])], encoded["names"]

    def pad(self, several):
        shape = len(several), max(map(self.size, several))
        degree = max(1, *(len(near) for each in several for near in each["near"]))
        values = np.zeros((*shape, several[0]["x"].shape[1]), dtype=np.float32)
        of_edges = np.zeros((*shape, degree, several[0]["e"].shape[1]), dtype=np.float32)
        mask, near_mask = np.zeros(shape, dtype=bool), np.zeros((*shape, degree), dtype=bool)
        places = np.zeros((*shape, degree), dtype=np.int64)
        for row, each in enumerate(several):
            values[row, : self.size(each)], mask[row, : self.size(each)] = each["x"], True
            for node, near in enumerate(each["near"]):
                near_mask[row, node, : len(near)] = True
                places[row, node, : len(near)] = np.array(list(near), dtype=np.int64) + row * shape[1]
                for place, number in enumerate(near.values()):
                    if number is not None:
                        of_edges[row, node, place] = each["e"][number]
        found = {"values": values, "mask": mask, "near": places, "near_mask": near_mask}
        return {**found, "edges": of_edges} if of_edges.shape[3] else found
