"""Pictures to captions and to labels from the command line: coloured squares are learned in seconds."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest

import saccade
from saccade.cli import main
from saccade.data.pictures import as_png
from saccade.interpretation.explorer import ImageAxis

pytest.importorskip("PIL")
COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 60, 220)}
HALVES = {"left": 0, "right": 8}
FIELD = ["size=16", "patch=4", "resize=null", "random_crop=no", "flip=no"]
SMALL = {
    "model.encoder.channels": "[8,12]",
    "trainer.batch_tokens": 800,
    "trainer.learning_rate": 1e-2,
    "trainer.max_steps": 120,
    "trainer.validate_every": 120,
    "trainer.schedule.warmup": 5,
}


def drawn(colour: str, half: str, choices: random.Random) -> bytes:
    pixels = np.random.default_rng(choices.randrange(2**32)).integers(90, 160, (16, 16, 3))
    top = choices.randrange(10)
    pixels[top : top + 6, HALVES[half] + 1 : HALVES[half] + 7] = COLOURS[colour]
    return as_png(pixels)


def made(folder: Path, name: str, count: int, seed: int) -> None:
    choices, rows = random.Random(seed), []
    (folder / name).mkdir()
    for number in range(count):
        colour, half = choices.choice(list(COLOURS)), choices.choice(list(HALVES))
        path = f"{name}/{number:03}.png"
        (folder / path).write_bytes(drawn(colour, half, choices))
        rows += [
            (path, f"a {colour} square is here", colour),
            (path, f"here is a {colour} square", colour),
        ]
    with open(folder / f"{name}.csv", "w", newline="") as file:
        csv.writer(file).writerows([("file", "caption", "colour"), *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    made(folder, "train", 60, 1)
    made(folder, "test", 9, 2)
    return folder


def trained(folder: Path, config: str, place: str, columns: str, name: str | None = None, **more) -> str:
    output = str(folder / (name or config.replace("/", "-")))
    settings = [f"--{name}={value}" for name, value in {**SMALL, **more}.items()]
    field = [f"--{place}.{each}" for each in FIELD]
    data = ["--data.train", str(folder / "train.csv"), "--data.columns", columns]
    assert main(["train", config, *data, *field, *settings, "--output", output]) == 0
    return output


@pytest.fixture(scope="module")
def captioner(folder):
    sizes = {f"model.{name}_dim": 24 for name in ("annotation", "embedding", "hidden")}
    more = {**sizes, "model.dropout": 0.0, "task.target.tokeniser.min_frequency": 1, "model.doubly_stochastic": 0.1}
    return trained(folder, "captioning/show-attend-tell", "task.source", "source=file,target=caption", **more)


def test_captions_are_learned_and_all_references_of_a_picture_count(folder, captioner) -> None:
    run = saccade.load(captioner)
    found = run.evaluate(str(folder / "test.csv"))
    assert found.examples == 9  # pictures, and not captions
    assert found.figures["bleu_4"].value > 70
    assert found.figures["cider"].value > 200


def test_a_folder_of_pictures_gets_a_caption_a_file(folder, captioner, capsys) -> None:
    main(["predict", captioner, str(folder / "test"), "--format", "csv"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert all(f"{number:03}.png" in line for number, line in enumerate(lines[1:]))
    (folder / "more").mkdir(exist_ok=True)
    (folder / "more" / "a.png").write_bytes(drawn("red", "left", random.Random(3)))
    (folder / "more" / "b.png").write_bytes(b"no picture")
    main(["predict", captioner, str(folder / "more"), "--bad-rows", "skip"])
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "Skipped 1 bad row" in err
    assert main(["predict", captioner, str(folder / "more")]) != 0
    assert "b.png" in capsys.readouterr().err


def test_the_explorer_shows_the_picture_for_each_word(folder, captioner) -> None:
    run = saccade.load(captioner)
    item = run.explain([str(folder / "test" / "000.png")])[0]
    across = [each for each in item.maps if isinstance(each.keys, ImageAxis)]
    assert across
    assert across[0].keys.grid == (4, 4)
    assert across[0].weights.shape[-1] == 16


def test_bytes_over_http_are_what_a_file_is(folder, captioner) -> None:
    run = saccade.load(captioner)
    path = folder / "test" / "001.png"
    assert run.predict([path.read_bytes()])[0].text == run.predict([str(path)])[0].text


def test_hard_attention_is_trained_by_reinforce(folder) -> None:
    sizes = {f"model.{name}_dim": 16 for name in ("annotation", "embedding", "hidden")}
    more = {**sizes, "model.selection": "hard", "task.target.tokeniser.min_frequency": 1, "trainer.max_steps": 4}
    more |= {"trainer.validate_every": 4, "model.doubly_stochastic": 0.0}
    columns = "source=file,target=caption"
    output = trained(folder, "captioning/show-attend-tell", "task.source", columns, name="hard", **more)
    logged = [json.loads(line) for line in Path(output, "metrics.jsonl").read_text().splitlines()]
    assert any("penalty" in line for line in logged)


def test_a_transformer_writes_captions(folder) -> None:
    more = {"model.dim": 16, "model.decoder_layers": 1, "trainer.max_steps": 4, "trainer.validate_every": 4}
    run = trained(folder, "captioning/transformer", "task.source", "source=file,target=caption",
                  **more, **{"task.target.tokeniser.min_frequency": 1})  # fmt: skip
    answer = saccade.load(run).predict([str(folder / "test" / "000.png")])[0]
    assert answer.weights.shape[1] == 16


def test_pictures_are_classified_by_pooling(folder) -> None:
    run = saccade.load(trained(folder, "classification/pictures", "task.inputs.picture", "picture=file,label=colour",
                               **{"model.hidden_dim": 16}))  # fmt: skip
    found = run.evaluate(str(folder / "test.csv"))
    assert found.figures["accuracy"].value == pytest.approx(100.0)
    answer = run.predict([str(folder / "test" / "000.png")])[0]
    assert answer.attention.keys[5] == "2,2"
    maps = run.explain([str(folder / "test" / "000.png")])[0].maps
    assert isinstance(maps[-1].keys, ImageAxis)
