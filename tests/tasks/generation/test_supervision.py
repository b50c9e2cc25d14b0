"""Given alignments: from links of words to what attention learns."""

import math
import random

import pytest
import torch

import saccade
from saccade.data.special import EOS
from saccade.data.tokenisers import BpeTokeniser
from saccade.evaluation.alignment import match_and_mass
from saccade.fields import Text
from saccade.models import Cho, Luong, RNNSearch, Transformer
from saccade.tasks import Generation
from saccade.tasks.generation.supervision import gold_matrix, link_pieces
from saccade.training import seed_everything

EXAMPLES = [
    {"source": "a b c", "target": "y x", "alignment": "0-1 1-0 2-0"},
    {"source": "c a", "target": "x y x", "alignment": ""},
    {"source": "b c a c b", "target": "x", "alignment": "4-0"},
]


def fitted(*, max_length: int = 256, **arguments) -> Generation:
    task = Generation(source=Text(tokeniser="pretokenised", max_length=max_length), **arguments)
    task.fit(EXAMPLES)
    return task


def small_model(task: Generation, kind: type = RNNSearch, **arguments) -> torch.nn.Module:
    seed_everything(3)
    return task.build(kind, **arguments)


def test_links_of_words_are_links_of_all_their_pieces() -> None:
    source, target = [[0, 1], [3]], [[0], [1, 2, 4]]
    flat = link_pieces("0-1 1-0", source, target)
    pairs = set(zip(flat[::2], flat[1::2], strict=True))
    assert pairs == {(0, 1), (0, 2), (0, 4), (1, 1), (1, 2), (1, 4), (3, 0)}
    assert link_pieces("0p1 1-0", source, target) == flat


def test_subwords_are_linked_through_their_words() -> None:
    texts = ["lowest low lower newest new newer", "the lowest of the newest"]
    task = Generation(source=Text(tokeniser=BpeTokeniser(vocab_size=19)), alignment_weight=1.0)
    task.fit([{"source": texts[0], "target": texts[1], "alignment": ""}])
    example = {"source": "low newest", "target": "the newest", "alignment": "1-1"}
    encoded = task.encode(example)
    batch = task.collate([encoded])
    gold = gold_matrix([encoded["alignment"]], batch["target"], batch["source"])[0]
    words = [task.source.tokeniser.words(example["source"]), task.target.tokeniser.words(example["target"])]
    assert gold.sum() == len(words[0][1]) * len(words[1][1]) > 1
    assert gold[words[1][1]][:, words[0][1]].all()


def test_collated_links_stand_beside_the_tokens() -> None:
    task = fitted(alignment_weight=1.0)
    assert list(task.fields) == ["source", "target", "alignment"]
    batch = task.collate([task.encode(example) for example in EXAMPLES])
    gold = batch["alignment"]
    assert gold.shape == (*batch["target"].shape, batch["source"].shape[1]) == (3, 4, 6)
    assert gold.nonzero().tolist() == [[0, 0, 1], [0, 0, 2], [0, 1, 0], [2, 0, 4]]
    assert not gold[batch["target"] == EOS].any()


def test_shifted_links_stand_a_step_later() -> None:
    task = fitted(alignment_weight=1.0, alignment_shift=1)
    gold = task.collate([task.encode(example) for example in EXAMPLES])["alignment"]
    assert gold.nonzero().tolist() == [[0, 1, 1], [0, 1, 2], [0, 2, 0], [2, 1, 4]]


def test_without_a_weight_nothing_is_asked_for() -> None:
    task = fitted()
    assert list(task.fields) == ["source", "target"]
    assert "alignment" not in task.encode(EXAMPLES[0])


def test_length_is_that_of_the_texts() -> None:
    task = fitted(alignment_weight=1.0, max_length=3)
    example = {
        "source": "a b c",
        "target": "x x x",
        "alignment": " ".join(f"{j}-{i}" for j in range(3) for i in range(3)),
    }
    assert task.left_out(task.encode(example)) is None
    assert task.size(task.encode(example)) == (4, 4)


@pytest.mark.parametrize("training", [True, False])
def test_loss_against_a_loop(training) -> None:
    """In validation the loss is that of the tokens alone, so that it can be compared; the links are still watched."""
    plain, task = fitted(), fitted(alignment_weight=0.7)
    model = small_model(task, embedding_dim=5, hidden_dim=7, maxout_dim=11).train(training)
    missed = 0.0
    for example in EXAMPLES:
        encoded = task.encode(example)
        batch = task.collate([encoded])
        target_in = torch.tensor([[1, *encoded["target"][:-1]]])
        weights = model(batch["source"], batch["source"] > 0, target_in).weights[0]
        by_target: dict[int, list[int]] = {}
        for link in example["alignment"].split():
            source, target = map(int, link.split("-"))
            by_target.setdefault(target, []).append(source)
        for target, sources in by_target.items():
            missed -= sum(math.log(weights[target, source].item()) for source in sources) / len(sources)
    batch = task.collate([task.encode(example) for example in EXAMPLES])
    loss, tokens = task.loss(model, batch), plain.loss(model, {k: v for k, v in batch.items() if k != "alignment"})
    assert loss.count == tokens.count
    assert loss.parts["alignment"].item() == pytest.approx(missed, rel=1e-4)
    assert loss.total.item() == pytest.approx(tokens.total.item() + 0.7 * missed * training, rel=1e-4)


def test_supervision_moves_attention_to_the_links() -> None:
    sizes = {"embedding_dim": 16, "hidden_dim": 24}
    (_, alone), (_, told) = (_masses(RNNSearch, weight, **sizes) for weight in (0.0, 1.0))
    assert told > 0.8
    assert alone < 0.5


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (RNNSearch, {"embedding_dim": 16, "hidden_dim": 24, "score": "neural_coverage"}),
        (Luong, {"embedding_dim": 16, "hidden_dim": 24, "num_layers": 1}),
        (Transformer, {"dim": 24, "num_heads": 2, "encoder_layers": 1, "feed_forward_dim": 32, "dropout": 0.0}),
    ],
    ids=["coverage", "luong", "transformer"],
)
def test_any_attention_can_be_told(kind, sizes) -> None:
    before, after = _masses(kind, 1.0, **sizes)
    assert after > before + 0.25


def _masses(kind: type, weight: float, **sizes) -> tuple[float, float]:
    """The attention on the links before and after a training.

    They point beside the word that a token comes from, where no model looks by itself.
    """
    letters = random.Random(5)
    examples = []
    for _ in range(32):
        words = letters.choices("abcdefg", k=letters.randint(2, 4))
        beside = " ".join(f"{(place + 1) % len(words)}-{place}" for place in range(len(words)))
        examples.append({"source": " ".join(words), "target": " ".join(words), "alignment": beside})
    task = Generation(source=Text(tokeniser="pretokenised"), alignment_weight=weight)
    task.fit(examples)
    model = small_model(task, kind, **sizes)
    before = _mass(task, model.eval(), examples)
    optimiser = torch.optim.Adam(model.train().parameters(), lr=2e-2)
    batch = task.collate([task.encode(example) for example in examples])
    for _ in range(40):
        loss = task.loss(model, batch)
        optimiser.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return before, _mass(task, model.eval(), examples)


@torch.no_grad()
def _mass(task, model, examples) -> float:
    weights, gold = [], []
    for example in examples:
        encoded = task.encode(example)
        batch = task.collate([encoded])
        target_in = torch.tensor([[1, *encoded["target"][:-1]]])
        weights.append(model(batch["source"], batch["source"] > 0, target_in).weights[0])
        gold.append([tuple(map(int, link.split("-"))) for link in example["alignment"].split()])
    return match_and_mass(weights, gold).mass


def test_a_model_without_attention_is_told_so() -> None:
    task = fitted(alignment_weight=1.0)
    model = small_model(task, Cho, embedding_dim=5, hidden_dim=7, maxout_dim=11)
    with pytest.raises(ValueError, match="Cho has none: leave it at 0"):
        task.loss(model, task.collate([task.encode(EXAMPLES[0])]))


@pytest.mark.parametrize(
    ("alignment", "message"),
    [
        ("0-0 1:1", "'1:1'"),
        ("3-0", "3-0, but the source has 3 words"),
        ("0-2", "0-2, but the target has 2 words"),
        ("-1-0", "'-1-0'"),
    ],
)
def test_impossible_links_are_named(alignment, message) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(alignment_weight=1.0).encode({**EXAMPLES[0], "alignment": alignment})


def test_impossible_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="alignment_weight must be 0 or more, got -1"):
        Generation(alignment_weight=-1)
    with pytest.raises(ValueError, match="alignment_shift must be 0 or 1, got 2"):
        Generation(alignment_shift=2)


@pytest.mark.parametrize("columns", [None, {"source": 0, "target": 1, "alignment": 2}])
def test_files_have_links_for_training_and_need_none_for_evaluation(columns, tmp_path) -> None:
    rows = [f"{e['source']}\t{e['target']}" for e in EXAMPLES]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows))
    with_links = [f"{row}\t{e['alignment']}\n" for row, e in zip(rows, EXAMPLES, strict=True)]  # one has no links
    (tmp_path / "linked.tsv").write_text("".join(with_links))
    run = saccade.train(
        task={"source": {"class": "text", "tokeniser": "pretokenised"}, "alignment_weight": 1.0},
        model={"class": "rnnsearch", "embedding_dim": 5, "hidden_dim": 7},
        data={"train": str(tmp_path / "linked.tsv"), "held_out": 0.0, "columns": columns},
        trainer={"max_steps": 1},
        output=tmp_path / "run",
    )
    assert run.result is not None
    assert run.evaluate(str(tmp_path / "pairs.tsv"), beam=1).examples == len(EXAMPLES)
    assert run.evaluate(str(tmp_path / "linked.tsv"), beam=1).examples == len(EXAMPLES)
