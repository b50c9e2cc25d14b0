"""Embeddings that start with word vectors, in whatever model embeds the field."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade
from saccade.data.vectors import VectorFile, Word2Vec, read_vectors, write_vectors
from saccade.fields import Document, Text
from saccade.models import HAN, AttentionPooling, RNNSearch, Transformer
from saccade.tasks import Classification, Generation
from saccade.tasks.initialising import start_embeddings, tables_of
from saccade.training import seed_everything
from tests.tasks.test_classification import films

DIM = 5
WORDS = ["the", "film", "superb", "awful", "elsewhere"]
VALUES = np.random.default_rng(1).normal(size=(5, DIM)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    write_vectors(tmp_path / "vectors.txt", WORDS, VALUES)
    return str(tmp_path / "vectors.txt")


def fitted(vectors):
    task = Classification(inputs={"text": Text(tokeniser="word", vectors=vectors)})
    examples = [{"text": text, "label": label} for text, label in films(30, 1)]
    task.fit(examples)
    seed_everything(1)
    return task, task.build(AttentionPooling, embedding_dim=DIM, hidden_dim=7), [task.encode(e) for e in examples]


def table_of(model):
    return model.encoder.embedding.table.weight


@pytest.mark.parametrize("rescale", [False, True])
def test_known_words_start_with_their_vectors_and_others_as_they_were(path, tmp_path, rescale):
    task, model, rows = fitted(VectorFile(path=path, rescale=rescale))
    before = table_of(model).detach().clone()
    said = start_embeddings(task, model, rows, tmp_path, fresh=True)
    assert said[0] == "  text: 4 of 9 words start with vectors, and all are trained."
    assert "WARNING: text: 5 words have no vector" in said[1]
    after, words = table_of(model).detach(), task.inputs["text"].vocabulary()
    known = [word in WORDS for word in words]
    assert torch.equal(after[~torch.tensor(known)], before[~torch.tensor(known)])
    wanted = torch.tensor(np.stack([VALUES[WORDS.index(word)] for word in words if word in WORDS]))
    if rescale:
        wanted = wanted * before.square().mean().sqrt() / wanted.square().mean().sqrt()
    torch.testing.assert_close(after[torch.tensor(known)], wanted)
    assert words[:4] == [""] * 4


def test_punctuation_is_looked_up_without_its_joiner():
    field = Text(tokeniser="word")
    field.fit(["a, b"])
    assert field.tokeniser.parts("a, b")[1] == "￭,"
    assert set(field.vocabulary()[4:]) == {"a", "b", ","}


def train(folder, vectors, **trainer):
    return saccade.train(
        task={
            "class": "classification",
            "inputs": {"text": {"class": "text", "tokeniser": "word", "vectors": vectors}},
        },
        model={"class": "pooling", "embedding_dim": DIM, "hidden_dim": 7, "dropout": 0.0},
        data={"train": films(60, 2), "held_out": 0.0},
        trainer={
            "max_steps": 6,
            "batch_tokens": 200,
            "optimiser": "adamw",
            "weight_decay": 0.1,
            "learning_rate": 0.02,
            "checkpoint_every": 3,
            "device": "cpu",
            **trainer,
        },
        output=folder,
    )


@pytest.mark.parametrize("tune", ["all", "new", "none"])
def test_training_changes_what_it_may(path, tmp_path, tune):
    run = train(tmp_path / "run", {"class": "file", "path": path, "tune": tune, "rescale": False})
    field, table = run.task.inputs["text"], table_of(run.model).detach()
    for place, word in enumerate(field.vocabulary()):
        if word in WORDS:
            same = np.array_equal(table[place].numpy(), VALUES[WORDS.index(word)])
            assert same == (tune != "all"), word
    seed_everything(run.plan.trainer.seed)
    start = table_of(run.plan.build()).detach()
    new = [place for place, word in enumerate(field.vocabulary()) if word and word not in WORDS]
    assert bool((table[new] == start[new]).all()) == (tune == "none")


def test_a_run_needs_no_file_once_it_has_begun(path, tmp_path):
    vectors = {"class": "file", "path": path, "tune": "new", "rescale": False}
    whole = train(tmp_path / "whole", vectors)
    train(tmp_path / "begun", vectors, max_steps=3)
    (tmp_path / "vectors.txt").unlink()
    resumed = saccade.train(resume=tmp_path / "begun", data=films(60, 2), overrides={"trainer.max_steps": 6})
    assert torch.equal(table_of(resumed.model), table_of(whole.model))
    assert saccade.load(tmp_path / "whole").predict(["superb"])[0].value in ("good", "bad")


def test_word2vec_of_the_training_texts(tmp_path):
    task, model, rows = fitted(Word2Vec(epochs=1, min_count=3))
    before = table_of(model).detach().clone()
    start_embeddings(task, model, rows, tmp_path, fresh=True)
    known = (table_of(model) != before).any(1)
    words = task.inputs["text"].vocabulary()
    counts = np.bincount(np.concatenate([row["text"] for row in rows]), minlength=len(words))
    assert known.tolist() == [bool(word) and count >= 3 for word, count in zip(words, counts, strict=True)]


class TwoTables(nn.Module):
    """Looks up both sides in tables of the same size, one of them without a module of its own."""

    def __init__(self, *, vocab: int, vocab_2: int, classes: int) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.randn(vocab, DIM))
        self.other = nn.Embedding(vocab_2, DIM)
        self.positions = nn.Embedding(vocab, DIM)
        self.output_proj = nn.Linear(DIM, classes)

    def forward(self, one, one_mask, other, other_mask):
        places = self.positions(torch.arange(one.shape[1]).clamp(max=3))
        return self.output_proj(F.embedding(one, self.one).mean(1) + self.other(other).mean(1) + places.mean(0))


def test_tables_of_the_same_size_are_told_apart():
    texts = {"premise": Text(tokeniser="word"), "hypothesis": Text(tokeniser="word")}
    task = Classification(inputs=texts, joint=False)
    examples = [{"premise": f"a{n} b{n}", "hypothesis": f"c{n} d{n % 3} e{n}", "label": str(n % 2)} for n in range(13)]
    task.fit(examples)
    task.inputs["hypothesis"].tokeniser._set([f"word {n}" for n in range(task.inputs["premise"].sizes()["vocab"] - 4)])
    rows = [task.encode(example) for example in examples]
    for number, row in enumerate(rows):
        row["hypothesis"] = [4 + (7 * number) % 20, 4 + (11 * number) % 20]
    model = TwoTables(**task.sizes())
    assert [t is model.one for t in tables_of(task, model, rows, "premise")] == [True]
    assert [t is model.other.weight for t in tables_of(task, model, rows, "hypothesis")] == [True]


def test_texts_that_share_a_vocabulary_share_its_vectors(path, tmp_path):
    texts = {role: Text(tokeniser="word", vectors=VectorFile(path=path)) for role in ("premise", "hypothesis")}
    task = Classification(inputs=texts)
    examples = [{"premise": f"the film {n}", "hypothesis": f"superb {n}", "label": str(n % 2)} for n in range(13)]
    task.fit(examples)

    class OneTable(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(task.inputs["premise"].sizes()["vocab"], DIM)

        def forward(self, one, one_mask, other, other_mask):
            return (self.table(one).mean(1) + self.table(other).mean(1))[:, :2]

    model = OneTable()
    said = start_embeddings(task, model, [task.encode(e) for e in examples], tmp_path, fresh=True)
    assert [line.split(" words")[0] for line in said if "start with" in line] == ["  premise: 3 of 16"]


def test_documents_start_with_vectors(path, tmp_path):
    task = Classification(inputs={"text": Document(vectors=VectorFile(path=path, rescale=False))})
    examples = [{"text": ["the film was superb .", f"number {n} ."], "label": str(n % 2)} for n in range(13)]
    task.fit(examples)
    model = task.build(HAN, embedding_dim=DIM, hidden_dim=3)
    rows = [task.encode(example) for example in examples]
    (said, _) = start_embeddings(task, model, rows, tmp_path, fresh=True)
    assert said.startswith("  text: 3 of ")
    (table,) = tables_of(task, model, rows, "text")
    assert np.array_equal(table[task.inputs["text"].vocabulary().index("superb")].detach().numpy(), VALUES[2])


@pytest.mark.parametrize("model", [RNNSearch, Transformer])
def test_source_and_target_of_encoder_decoders(model):
    task = Generation(source=Text(tokeniser="char"), target=Text(tokeniser="char"))
    examples = [{"source": "abcde"[: n % 4 + 2], "target": "vwxyz"[n % 3 :]} for n in range(9)]
    task.fit(examples)
    sizes = {"dim": 8, "num_heads": 2} if model is Transformer else {"embedding_dim": 8, "hidden_dim": 7}
    made = task.build(model, **sizes)
    rows = [task.encode(example) for example in examples]
    (source,), (target,) = (tables_of(task, made, rows, role) for role in ("source", "target"))
    assert source is made.encoder.embedding.weight
    assert target is made.decoder.embedding.weight


def test_wrong_vectors_are_named(path, tmp_path):
    task, _, rows = fitted(VectorFile(path=path))
    narrow = task.build(AttentionPooling, embedding_dim=3, hidden_dim=7)
    with pytest.raises(ValueError, match="vectors of 5 dimensions, but the model's embeddings have 3"):
        start_embeddings(task, narrow, rows, tmp_path, fresh=True)

    class Blind(nn.Module):
        def forward(self, tokens, mask):
            return tokens.float().mean(1, keepdim=True).expand(-1, 2)

    with pytest.raises(ValueError, match="text has vectors, and Blind has no table of embeddings for its 13 words"):
        start_embeddings(task, Blind(), rows, tmp_path, fresh=True)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_vectors(tmp_path / "none.txt")
