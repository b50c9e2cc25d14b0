"""The functions of the reproduction, and its command at toy scale."""

import json

from tests.reproductions.scripts import script

naming = script("method-naming")

SOURCE = '''
class Reader:
    def readFirstLine(self, file_name, mode="r"):
        """Not a part of the body."""
        with open(file_name, mode) as opened_file:
            for line in opened_file:
                return line.strip()
        return readFirstLine(0)

    def __init__(self):
        self.first = self.second = self.third = self.fourth = None

    def short(self):
        pass
'''


def test_bodies_and_names_are_split_into_parts(tmp_path) -> None:
    (tmp_path / "reader.py").write_text(SOURCE)
    ((body, name),) = naming.functions(tmp_path / "reader.py")
    assert name == "read first line"
    assert body.startswith("self file name mode with open ( file name , mode ) as opened file : for line in")
    assert body.endswith("return self_call ( <number> )")
    assert naming.parts("HTTPServerError2") == ["http", "server", "error", "2"]
    (tmp_path / "bad.py").write_text("def (:")
    assert list(naming.functions(tmp_path / "bad.py")) == []


def test_every_model_is_measured(tmp_path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    for number in range(12):
        (library / f"file{number}.py").write_text(SOURCE.replace("opened", "abcdefghijkl"[number]))
    places = ["--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--library", str(library)]
    assert naming.main([*places, "--steps", "2"]) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert found["examples"] == {"train": 10, "test": 2}
    for name in naming.MODELS:
        assert 0 <= found["models"][name]["word_f1"] <= 100
