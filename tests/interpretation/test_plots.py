"""Pictures are written, and a missing library is named."""

import struct
import sys

import pytest
import torch

from saccade.interpretation.plots import plot_attention, plot_lines

PNG = b"\x89PNG\r\n\x1a\n"


def test_pictures(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    eye = (torch.eye(3, 5), list("abcde"), ["x", "y", "</s>"])
    plot_attention([eye, eye], tmp_path / "attention.png")
    plot_lines({"bleu": ([5, 15], [30.0, 28.0])}, tmp_path / "lengths.png", x="source tokens", y="BLEU")
    assert (tmp_path / "attention.png").read_bytes().startswith(PNG)
    assert (tmp_path / "lengths.png").read_bytes().startswith(PNG)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_attention([], tmp_path / "nothing.png")


def test_many_matrices_stand_in_lines_of_four(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    one, sizes = (torch.eye(7, 5), list("abcde"), list("tuvwxyz")), []
    for count in (4, 11):
        plot_attention([one] * count, tmp_path / "many.png", names=[f"layer {n}" for n in range(count)])
        sizes.append(struct.unpack(">II", (tmp_path / "many.png").read_bytes()[16:24]))
    assert sizes[0][0] == sizes[1][0]
    assert 3 * sizes[0][1] == pytest.approx(sizes[1][1], abs=3)


def test_missing_library_is_named_with_the_command(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "saccade\[plots\]"'):
        plot_attention([(torch.eye(2), ["a", "b"], ["x", "y"])], tmp_path / "a.png")
