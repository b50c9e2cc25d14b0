"""Pairs of nodes: reading them, hiding their edges, and learning links."""

import numpy as np
import pytest
import torch

from saccade.artifacts import ArtifactError, pack_tensors
from saccade.data.cell import Cell
from saccade.data.errors import BadRow, DataError
from saccade.fields import Link
from saccade.interpretation.recording import record
from saccade.models import LinkGAT

CELL = Cell("train.csv", 7, "pair")


@pytest.fixture
def field(tmp_path):
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    np.savez(tmp_path / "graph.npz", x=np.eye(6, 5, dtype=np.float32), edges=edges)
    return Link(graph=str(tmp_path / "graph.npz"))


@pytest.mark.parametrize("raw", ["0 3", ["0", "3"], [0, 3], ("0", 3.0)])
def test_reading(field, raw):
    assert field.read(raw, CELL) == "0 3"
    assert field.encode("0 3") == [0, 3]


@pytest.mark.parametrize(("raw", "message"), [("0", "not two nodes"), (["0"], "not two nodes"), ("0 9", "no node '9'")])
def test_bad_pairs(field, raw, message):
    with pytest.raises(BadRow, match=f"line 7: .*{message}"):
        field.read(raw, CELL)


def test_training_hides_the_edges_of_its_pairs(field):
    field.fit(["0 1", "0 3"])
    assert "1 of 2 training pairs are edges" in field.learned()
    for generator, hidden in ((None, False), (torch.Generator(), True)):
        padded = field.pad([[0, 1]], generator)
        one, other = padded["values"][0].tolist()
        starts, near = padded["starts"], padded["neighbours"]
        assert (other in near[starts[one] : starts[one + 1]].tolist()) is not hidden
        assert (one in near[starts[other] : starts[other + 1]].tolist()) is not hidden


@pytest.mark.parametrize("directed", [False, True])
def test_model(field, directed):
    model = LinkGAT(dim=5, hops=2, classes=3, num_heads=2, head_dim=4, directed=directed).eval()
    padded = field.pad([[0, 3], [3, 0], [5, 1]])
    logits = model(*padded.values())
    assert logits.shape == (3, 3)
    assert torch.allclose(logits[0], logits[1]) is not directed


def test_what_was_looked_at(field):
    model = LinkGAT(dim=5, hops=2, classes=2, num_heads=2, head_dim=4).eval()
    with record(model) as trace:
        model(*field.pad([field.encode("1 5")]).values())
    maps = field.maps("1 5", trace, "yes")
    names = ("layers.0.attention", "layers.1.attention", "all layers")
    assert [each.name for each in maps] == [f"{name} of {end}" for end in "15" for name in names]
    assert maps[1].keys.names == ["0", "1", "2"]
    (seen,) = field.attended(["1 5"], trace)
    assert seen.names == ["1 ← 0", "1 ← 1", "1 ← 2", "5 ← 5"]
    assert float(seen.weights.sum()) == pytest.approx(1.0)


def test_validation_pairs_that_the_graph_contains_are_reported(field):
    field.fit(["0 3"])
    (leak,) = field.leaks(["1 0", "0 4"])
    assert leak.startswith("1 of 2 validation pairs are edges of the graph")
    assert field.leaks(["0 4"]) == field.leaks([]) == []


def test_only_edges_that_are_training_pairs_are_read(field):
    kept = Link(graph=field.files[0], edges="trained")
    kept.fit(["1 0", "2 3", "0 4"])
    assert kept.graph.edges.tolist() == [[0, 1], [2, 3]]
    assert "2 edges" in kept.learned()
    assert "2 other edges are not read, since they are not training pairs" in kept.learned()
    assert "2 of 3 training pairs are edges" in kept.learned()
    assert kept.leaks(["1 2", "3 4"]) == []
    assert kept.leaks(["1 2", "3 2"]) == [
        "1 of 2 validation pairs are also training pairs, in one direction or the other. Name each link once."
    ]
    with pytest.raises(ValueError, match="edges must be 'all' or 'trained', got 'none'"):
        Link(graph="graph.npz", edges="none")


@pytest.mark.parametrize("directed", [False, True])
def test_pairs_without_a_link_are_drawn_evenly(field, directed):
    field.directed = directed
    field.fit(["0 3"])
    drawn = field.unlinked(3000, torch.Generator().manual_seed(3), [[5, 4]])
    taken = {(0, 1), (1, 2), (2, 3), (3, 4), (0, 3), (5, 4)}
    taken |= set() if directed else {(b, a) for a, b in taken}
    wanted = {(a, b) for a in range(6) for b in range(6) if a != b} - taken
    counts = dict.fromkeys(wanted, 0)
    for pair in map(tuple, drawn.tolist()):
        counts[pair] += 1  # a KeyError for any other
    assert drawn.shape == (3000, 2)
    expected = 3000 / len(wanted)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_a_full_graph_has_no_pairs_without_a_link(tmp_path):
    edges = np.array([(a, b) for a in range(5) for b in range(5)])
    np.savez(tmp_path / "full.npz", x=np.eye(5, dtype=np.float32), edges=edges)
    with pytest.raises(DataError, match="Nearly all pairs of nodes are linked"):
        Link(graph=str(tmp_path / "full.npz")).unlinked(3, torch.Generator())


def test_a_resumed_training_draws_the_same_pairs(field, tmp_path):
    field.fit(["0 1", "0 3"])
    folder = tmp_path / "saved"
    folder.mkdir()
    field.save(folder)
    again = Link(graph="elsewhere.npz")
    again.load(folder)
    one, other = (each.unlinked(50, torch.Generator().manual_seed(3)) for each in (field, again))
    assert one.tolist() == other.tolist()
    assert again.learned() == field.learned()
    for pairs in (torch.tensor([[0, 6]]), torch.tensor([0, 1]), torch.zeros(1, 2)):
        (folder / "pairs.safetensors").write_bytes(pack_tensors({"pairs": pairs}))
        with pytest.raises(ArtifactError, match=r"pairs\.safetensors is damaged"):
            again.load(folder)
