"""An export appears complete or not at all, and replaces nothing but an earlier export."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from saccade.artifacts import verify
from saccade.export import Format, export
from saccade.export.base import MARK
from saccade.export.onnx import Onnx
from saccade.export.page import Page
from saccade.export.torch_program import TorchProgram
from saccade.models import RNNSearch

RUN = SimpleNamespace(folder=Path("runs/model"))


class Plain(Format):
    def __init__(self, *, content: str = "first") -> None:
        self.content = content

    def check(self, run) -> None:
        if self.content == "unfit":
            raise ValueError("the selection hard samples, and cannot be exported")

    def write(self, run, output) -> None:
        (output / "inner").mkdir()
        (output / "inner" / "model.bin").write_text(self.content)
        if self.content == "broken":
            raise RuntimeError("half way")


class Single(Plain):
    suffix = ".html"

    def write(self, run, output) -> None:
        output.write_text(f"{MARK}: {self.content}")
        if self.content == "broken":
            raise RuntimeError("half way")


def test_folder_is_sealed_and_says_what_it_is(tmp_path):
    place = export(RUN, tmp_path / "new" / "out", format=Plain())
    assert (place / "inner" / "model.bin").read_text() == "first"
    verify(place, required=["inner/model.bin", "export.json"])
    assert json.loads((place / "export.json").read_text())["run"] == "model"


class Lacking(Plain):
    def remarks(self, run) -> list[str]:
        return ["The export has no CTC."]


def test_what_an_export_lacks_is_a_warning_and_stays_with_it(tmp_path):
    with pytest.warns(UserWarning, match="The export has no CTC"):
        place = export(RUN, tmp_path / "out", format=Lacking())
    assert json.loads((place / "export.json").read_text())["remarks"] == ["The export has no CTC."]


@pytest.mark.parametrize("format", [Onnx, TorchProgram, Page])
def test_graphs_have_no_ctc(format):
    sizes = {"source_dim": 3, "target_vocab": 11, "embedding_dim": 5, "hidden_dim": 4}
    task = SimpleNamespace(contiguous=False)
    (remark,) = format().remarks(SimpleNamespace(task=task, model=RNNSearch(**sizes, ctc_weight=0.2)))
    assert "searches with CTC (ctc_weight=0.2)" in remark
    assert not format().remarks(SimpleNamespace(task=task, model=RNNSearch(**sizes)))


def test_earlier_export_is_replaced_once_the_new_one_is_complete(tmp_path):
    place = export(RUN, tmp_path / "out", format=Plain())
    with pytest.raises(RuntimeError):
        export(RUN, place, format=Plain(content="broken"))
    assert (place / "inner" / "model.bin").read_text() == "first"
    export(RUN, place, format=Plain(content="second"))
    assert (place / "inner" / "model.bin").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_else_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"not empty \(it contains thesis.txt\)"):
        export(RUN, tmp_path / "mine", format=Plain())
    with pytest.raises(FileExistsError, match="is a file"):
        export(RUN, tmp_path / "mine" / "thesis.txt", format=Plain())
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"

    place = export(RUN, tmp_path / "out", format=Plain())
    (place / "inner" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"it contains inner/thesis.txt"):
        export(RUN, place, format=Plain(content="second"))
    assert (place / "inner" / "thesis.txt").read_text() == "years of work"


def test_what_cannot_be_exported_is_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="the selection hard samples"):
        export(RUN, tmp_path / "out", format=Plain(content="unfit"))
    assert not list(tmp_path.iterdir())


def test_one_file(tmp_path):
    with pytest.raises(ValueError, match=r"end its name with \.html"):
        export(RUN, tmp_path / "page", format=Single())
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        export(RUN, tmp_path / "missing" / "page.html", format=Single())
    place = export(RUN, tmp_path / "page.html", format=Single())
    with pytest.raises(RuntimeError):
        export(RUN, place, format=Single(content="broken"))
    assert [path.read_text() for path in tmp_path.iterdir()] == [f"{MARK}: first"]
    export(RUN, place, format=Single(content="second"))
    assert place.read_text().endswith("second")
    place.write_text("<p>written by hand</p>")
    with pytest.raises(FileExistsError, match="not an earlier export"):
        export(RUN, place, format=Single())
    assert place.read_text() == "<p>written by hand</p>"


def test_options_belong_to_the_constructor(tmp_path):
    with pytest.raises(TypeError, match="give content to its constructor"):
        export(RUN, tmp_path / "out", format=Plain(), content="x")
    with pytest.raises(ValueError, match="Unknown format 'onyx'"):
        export(RUN, tmp_path / "out", format="onyx")


def test_command_refuses_unknown_formats_and_options(call, tmp_path):
    code, _, errors = call("export", "nowhere", "--format", "onyx", "--output", str(tmp_path / "out"))
    assert code == 2
    assert "unknown 'onyx'" in errors
