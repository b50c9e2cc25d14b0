"""Parts of the runner that need no graph."""

import numpy as np
import pytest

from saccade.export.runner import AHEAD, Model
from saccade.export.runner.audio import InputReader
from saccade.fields import Audio

SECOND = 8000


class Echo:
    """Answers each text with itself, and notes what it was given."""

    empty_answer = None

    def __init__(self) -> None:
        self.read, self.batches = 0, []

    def encode(self, example):
        self.read += 1
        return example["text"]

    def size(self, row):
        return len(row)

    def answer(self, rows):
        self.batches.append(rows)
        return rows


def test_many_inputs_are_read_as_they_are_answered() -> None:
    model = Model.__new__(Model)
    model.readers, model.about, model.task = {"text": None}, {"inputs": {"text": {}}}, Echo()
    texts = ["a" * (1 + number * 7 % 11) + str(number) for number in range(3 * AHEAD + 5)]
    answers = model.stream((text for text in texts), batch_size=2)
    found = [next(answers)]
    assert model.task.read == 2 * AHEAD
    assert [*found, *answers] == texts
    assert max(map(len, model.task.batches)) == 2
    assert model.predict(texts, batch_size=3) == texts


@pytest.mark.parametrize("rate", [SECOND, 11025])
def test_only_the_part_of_a_recording_that_is_read_is_computed(rate) -> None:
    reader = InputReader({**Audio(mels=5).portable(), "kind": "audio"})
    sound = {"array": np.random.default_rng(3).normal(size=41 * rate // 2).astype(np.float32), "sampling_rate": rate}
    computed = []
    whole = reader.log_mel
    reader.log_mel = lambda samples: computed.append(len(samples)) or whole(samples)
    cut, rest = reader.encode(sound, most=701), reader.encode(sound)
    np.testing.assert_allclose(cut["features"], rest["features"][:701], atol=1e-5)
    assert len(rest["features"]) == 2051  # more than are computed at once
    assert cut["seconds"] == rest["seconds"] == pytest.approx(20.5, abs=1e-3)
    assert computed[0] < 7.3 * SECOND < computed[1]
