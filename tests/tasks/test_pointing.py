"""Figures of pictures with boxes: of captions while they are forced, and of labels."""

import math

import numpy as np
import pytest
import torch

from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.evaluation.pointing import pointing_accuracy, weight_in_box
from saccade.fields import Image
from saccade.models import AttentionPooling, ShowAttendTell
from saccade.tasks import Classification, Generation

SIDE, PATCH = 12, 4
WHOLE = [(0.0, 0.0, 1.0, 1.0)]
CORNER = [(0.0, 0.0, 0.4, 0.4)]


def pictures(field: Image, count: int) -> list:
    draws = np.random.default_rng(2)
    arrays = draws.integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)
    return [field.read(each, Cell("memory", number, "source")) for number, each in enumerate(arrays, start=1)]


@pytest.fixture(scope="module")
def captioner():
    field = Image(size=SIDE, patch=PATCH)
    task = Generation(source=field, metrics=["pointing", "weight_in_box", "exact_match"])
    boxes = [[WHOLE, CORNER], [[], CORNER, WHOLE], [CORNER]]
    texts = ["red dog", "one more cat", "bird"]
    each = zip(pictures(field, 3), texts, boxes, strict=True)
    examples = [{"source": picture, "target": text, "boxes": own} for picture, text, own in each]
    task.fit(examples)
    torch.manual_seed(3)
    model = task.build(ShowAttendTell, encoder="patches", annotation_dim=8, embedding_dim=5, hidden_dim=7)
    return task, model.eval(), examples


def test_captions_are_forced_and_the_weights_of_letters_make_those_of_words(captioner) -> None:
    task, model, examples = captioner
    found = task.measure(model, task.predict(model, examples), examples)
    assert list(found) == ["pointing", "weight_in_box", "exact_match"]
    weights = []
    for example in examples:  # one by one, without padding
        ids = task.target.tokeniser.encode(example["target"])
        batch = task.collate([{"source": task.source.encode(example["source"]), "target": ids}])
        before = torch.tensor([[1, *ids[:-1]]])
        rows = model(batch["source"], batch["source_mask"], before).weights[0].detach()
        words = task.target.tokeniser.words(example["target"])
        weights.append(torch.stack([rows[word].mean(0) for word in words]))
    boxes, grid = [example["boxes"] for example in examples], (3, 3)
    assert found["pointing"].value == pytest.approx(pointing_accuracy(weights, boxes, grid).value)
    assert found["weight_in_box"].value == pytest.approx(weight_in_box(weights, boxes, grid).value, rel=1e-4)


def test_boxes_are_read_if_a_figure_needs_them(captioner) -> None:
    task, _, examples = captioner
    assert "boxes" in task.scored
    assert "boxes" not in task.fields
    short = {**examples[0], "boxes": [WHOLE]}
    with pytest.raises(BadRow, match=r"memory.*5.*there are 1 boxes for 2 words of the target"):
        task.check_example(short, Cell("memory", 5, "boxes"))


def test_pointing_is_for_pictures_alone() -> None:
    with pytest.raises(ValueError, match="pointing is a figure of pictures"):
        Generation(metrics=["pointing"])


@pytest.mark.parametrize("encoder", ["patches", {"channels": [6, 8]}])
def test_labels_of_pictures(encoder) -> None:
    """The residual encoder makes 3 x 3 places of 9 patches in any size: here 6 x 6 patches become 3 x 3 places."""
    patch = 4 if encoder == "patches" else 2
    field = Image(size=SIDE, patch=patch)
    task = Classification(inputs={"picture": field}, metrics=["accuracy"])
    values = pictures(field, 3)
    boxes = [[WHOLE[0:1], CORNER], [CORNER], []]
    examples = [
        {"picture": value, "label": name, "boxes": own} for value, name, own in zip(values, "aba", boxes, strict=True)
    ]
    task.fit(examples)
    torch.manual_seed(3)
    if encoder == "patches":
        model = task.build(AttentionPooling, encoder="patches", hidden_dim=8)
    else:
        from saccade.encoders import ResidualEncoder

        residual = ResidualEncoder(patch=patch, dim=8, **encoder)
        model = task.build(AttentionPooling, encoder=residual, hidden_dim=8)
    answers = task.predict(model, examples)
    places = {answer.weights.shape[1] for answer in answers}
    assert places == {9}
    assert answers[0].attention.keys[:2] == ["1,1", "1,2"]
    found = task.score(answers, examples)
    rows = [answer.weights for answer in answers[:2]]
    flat = [[[*WHOLE, *CORNER]], [CORNER]]
    assert found["pointing"].value == pointing_accuracy(rows, flat, (3, 3)).value
    assert found["weight_in_box"].value == pytest.approx(weight_in_box(rows, flat, (3, 3)).value)
    assert math.isclose(float(rows[0].sum()), 1.0, rel_tol=1e-5)
    without = [{role: value for role, value in each.items() if role != "boxes"} for each in examples]
    assert list(task.score(answers, without)) == ["accuracy"]
