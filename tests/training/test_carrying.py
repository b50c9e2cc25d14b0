"""What is carried between pieces, by one process or several."""

from types import SimpleNamespace

import torch

from saccade.data.contiguous import CARRIED, Pieces
from saccade.tasks import Loss
from saccade.training.carrying import Carrying, interleaved

PIECES = Pieces([{"text": list(range(4, 40))}], begin=1, streams=5, length=3)


def processes(index=0, count=1, gathered=None):
    return SimpleNamespace(index=index, count=count, device="cpu", gather=lambda own: gathered)


def loss(rows):
    return Loss(torch.zeros(()), torch.ones(()), {}, {"h": torch.tensor(rows)})


def test_first_pieces_are_given_nothing() -> None:
    carrying = Carrying(PIECES, processes())
    assert carrying.given({}, [0, 1, 2, 3, 4]) == {}
    carrying.keep(loss([[1.0]] * 5), [0, 1, 2, 3, 4])
    assert list(carrying.given({}, [5, 6, 7, 8, 9])) == [f"{CARRIED}h"]
    assert carrying.given({}, [0, 1, 2, 3, 4]) == {}  # the next epoch


def test_other_rows_carry_nothing() -> None:
    carrying = Carrying([{"text": [1, 4, 2]}], processes())
    carrying.keep(loss([[1.0]]), [0])
    assert carrying.state() == {}
    assert carrying.given({}, [0]) == {}


def test_any_number_of_processes_goes_on_from_the_streams_of_another() -> None:
    whole = torch.arange(5.0)[:, None]
    assert torch.equal(interleaved([whole[0::2], whole[1::2]]), whole)
    shares = [{"h": whole[index::3]} for index in range(3)]
    carrying = Carrying(PIECES, processes(count=3, gathered=shares))
    assert torch.equal(carrying.state()["h"], whole)
    idle = Carrying(PIECES, processes(count=7, gathered=[*({"h": whole[i : i + 1]} for i in range(5)), {}, {}]))
    assert torch.equal(idle.state()["h"], whole)
    for index in range(2):
        other = Carrying(PIECES, processes(index=index, count=2))
        other.load({"h": whole})
        assert torch.equal(other.tensors["h"], whole[index::2])
    last = Carrying(PIECES, processes(index=6, count=7))
    last.load({"h": whole})
    assert last.tensors == {}
