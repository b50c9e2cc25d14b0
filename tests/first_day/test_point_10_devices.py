"""A device that this machine lacks is refused for that reason."""

import pytest
import torch

import saccade


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_no_gpu_here(device, train) -> None:
    code, _, err = train("--trainer.device", device)
    assert code == 2
    assert f"device='{device}': there is no GPU here that PyTorch can use" in err


def test_what_is_no_device(train) -> None:
    assert (
        "device must be auto, cpu, cuda, cuda:0 (a number from 0) or mps, got 'gpu'"
        in train("--trainer.device", "gpu")[2]
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_run_is_not_loaded_onto_a_gpu_that_is_not_there(train) -> None:
    assert train()[0] == 0
    with pytest.raises(ValueError, match="there is no GPU here that PyTorch can use"):
        saccade.load("run", device="cuda")
