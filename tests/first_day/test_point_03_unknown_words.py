"""What a model cannot know is counted: unknown words of language models; what was copied is not lost."""

import json

import pytest

SMALL = ["--trainer.max_steps", "3", "--trainer.batch_tokens", "90", "--trainer.schedule", "constant"]


@pytest.fixture
def book(work, call):
    (work / "book.txt").write_text("the cat sees the dog .\nthe dog sees the cat , too .\n" * 11)
    (work / "test.txt").write_text("the cat sees a zebra .\n")
    words = ["--task.text.tokeniser", "word", "--model.dim", "24", "--model.num_layers", "1"]
    config = ["--data.train", "book.txt", "--output", "run", *words, *SMALL]
    return lambda name, *more: call("train", name, *config, *more)


SAID = "2 of 7 tokens are not in the vocabulary. The model only says how likely an unknown token is there"


def test_unknown_words_of_a_language_model_are_counted(book, call) -> None:
    code, _, err = book("language/lstm")
    assert code == 0, err
    code, out, err = call("score", "run", "test.txt", "--format", "jsonl")
    assert code == 0, err
    assert SAID in err
    assert "so perplexity and bits per byte are too low to compare with other vocabularies." in err
    assert json.loads(out)["unknown"] == 2
    assert SAID in call("evaluate", "run", "--data", "test.txt")[2]
    trained = "The model was trained on this file: the figures say little about new examples."
    assert trained not in call("evaluate", "run", "--data", "test.txt")[2]
    err = call("evaluate", "run", "--data", "book.txt")[2]
    assert "not in the vocabulary" not in err
    assert trained in err


def test_those_of_a_masked_model_too(book, call) -> None:
    positions = ["--model.positions", "learned", "--model.max_length", "12", "--task.text.max_length", "11"]
    code, _, err = book("language/transformer", "--task.causal", "no", *positions)
    assert code == 0, err
    for command in (["score", "run", "test.txt"], ["evaluate", "run", "--data", "test.txt"]):
        assert "2 of 6 tokens are not in the vocabulary." in call(*command)[2]
    long = "the cat sees the dog . " * 3 + "the [MASK]"
    said = "1 of 1 texts are too long for the model, which read only their ends."
    assert said in call("predict", "run", "--input", long)[2]
    assert said not in call("predict", "run", "--input", "the [MASK]")[2]


def test_copied_words_are_not_lost(work, call, monkeypatch) -> None:
    names = ["Ana", "Ben", "Eva", "Tom"] * 13
    (work / "pairs.tsv").write_text("".join(f"who saw {name} ?\t{name} was seen\n" for name in names))
    small = ["--model.embedding_dim", "6", "--model.hidden_dim", "8", *SMALL]
    code, _, err = call("train", "copying/copynet", "--data.train", "pairs.tsv", "--output", "run", *small)
    assert code == 0, err
    from saccade.tasks import Generation

    answer = Generation.answer

    def copied(self, model, batch, examples, options):
        """Answers that copy the third word of each source."""
        from dataclasses import replace

        found = answer(self, model, batch, examples, options)
        return [replace(one, tokens=[self.extension(each).said[2]]) for one, each in zip(found, examples, strict=True)]

    monkeypatch.setattr(Generation, "answer", copied)
    assert "unknown" not in call("predict", "run", "--input", "who saw Otto ?")[2]
    err = call("predict", "run", "--input", "who saw Otto today ?")[2]
    assert "1 input has parts that the model has never seen and reads as unknown: 'today'" in err
