"""Generation: examples to batches, batches to a loss, predictions to figures."""

import math

import pytest
import torch
from torch import nn

from saccade.data.special import BOS, EOS, PAD
from saccade.data.tokenisers import BpeTokeniser, CharTokeniser
from saccade.evaluation import by_length
from saccade.fields import Number, Text
from saccade.models import Cho, RNNSearch, Transformer
from saccade.tasks import GeneratedText, Generation, tasks
from saccade.training import seed_everything

EXAMPLES = [
    {"source": "abcab", "target": "bacba"},
    {"source": "ca", "target": "ac"},
    {"source": "bcbcbca", "target": "acbcbcb"},
]


def fitted(*, max_length: int = 256, **arguments) -> Generation:
    task = Generation(source=Text(tokeniser="char", max_length=max_length), **arguments)
    task.fit(EXAMPLES)
    task.observe([task.size(task.encode(example)) for example in EXAMPLES])
    return task


def small_model(task: Generation, kind: type[nn.Module] = RNNSearch) -> nn.Module:
    seed_everything(3)
    sizes = {"embedding_dim": 5, "hidden_dim": 7, "maxout_dim": 11}
    return task.build(kind, **sizes).eval()


def test_reachable_by_short_name() -> None:
    assert tasks.get("generation") is Generation


def test_encoding_ends_both_sides_and_round_trips() -> None:
    task = fitted()
    encoded = task.encode(EXAMPLES[0])
    assert encoded["source"][-1] == encoded["target"][-1] == EOS
    assert task.source.tokeniser.decode(encoded["source"]) == "abcab"
    assert task.size(encoded) == (6, 6)
    assert "target" not in task.encode({"source": "ab"})


def test_collated_batches_are_padded() -> None:
    task = fitted()
    batch = task.collate([task.encode(example) for example in EXAMPLES])
    assert batch["source"].shape == batch["target"].shape == (3, 8)
    assert (batch["source"] != PAD).sum(1).tolist() == batch["source_mask"].sum(1).tolist() == [6, 3, 8]
    assert torch.equal(batch["target_mask"], batch["target"] != PAD)


def test_long_examples_are_not_kept() -> None:
    task = fitted(max_length=5)
    reasons = [task.left_out(task.encode(example)) for example in EXAMPLES]
    assert reasons == [None, None, "source longer than max_length=5 tokens"]


def test_one_vocabulary_or_two() -> None:
    examples = [{"source": "ab", "target": "xyz"}]
    apart, joint = Generation(source=Text(tokeniser="char")), Generation(source=Text(tokeniser="char"), joint=True)
    apart.fit(examples)
    joint.fit(examples)
    assert apart.sizes() == {"source_vocab": 6, "target_vocab": 7}
    assert joint.sizes() == {"source_vocab": 9, "target_vocab": 9}
    assert joint.source.tokeniser is joint.target.tokeniser


def test_stand_in_sizes_tell_whether_the_vocabulary_is_joint() -> None:
    apart, joint = Generation().sizes(), Generation(joint=True).sizes()
    assert apart["source_vocab"] != apart["target_vocab"]
    assert joint["source_vocab"] == joint["target_vocab"]


@pytest.mark.parametrize(("given", "training"), [(0.0, True), (0.1, True), (0.1, False)])
def test_loss_is_the_sum_over_real_tokens(given, training) -> None:
    """Against a loop over sentences and steps, without batches or padding; smoothing is for training alone."""
    task = fitted(label_smoothing=given)
    smoothing = given if training else 0.0
    model = small_model(task).train(training)
    encoded = [task.encode(example) for example in EXAMPLES]
    expected, count, right = 0.0, 0, 0
    for example in encoded:
        source = torch.tensor([example["source"]])
        state = model.begin(model.encode(source, torch.ones_like(source, dtype=torch.bool)))
        token = torch.tensor([BOS])
        for wanted in example["target"]:
            step = model.step(token, state)
            log_probs = step.logits[0].log_softmax(-1)
            possible = [log_probs[token].item() for token in range(len(log_probs)) if token not in (PAD, BOS)]
            expected -= (1 - smoothing) * log_probs[wanted].item() + smoothing * sum(possible) / len(possible)
            right += int(log_probs.argmax() == wanted)
            state, token, count = step.state, torch.tensor([wanted]), count + 1
    loss = task.loss(model, task.collate(encoded))
    assert math.isclose(loss.total.item(), expected, rel_tol=1e-4)
    assert int(loss.count) == count
    assert int(loss.parts["accuracy"]) == right


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 3}, {"beam": 3, "nbest": 2}])
def test_predictions_keep_the_order_and_do_not_depend_on_the_batch(options) -> None:
    task = fitted()
    model = small_model(task)
    texts = ["ca", "abcab", "bcbcbca", "a", "cab"]
    together = task.predict(model, texts, batch_size=3, **options)
    alone = [task.predict(model, [text], **options)[0] for text in texts]
    for text, a, b in zip(texts, together, alone, strict=True):
        assert a.text == b.text
        assert a.score == pytest.approx(b.score, abs=1e-5)
        assert a.attention.keys == [*text, "</s>"]
        assert a.weights is not None
        assert a.weights.shape == (len(a.attention.queries), len(a.attention.keys))
        assert torch.allclose(a.weights.sum(1), torch.ones(len(a.attention.queries)), atol=1e-5)
        assert len(a.alternatives) == (options.get("nbest", 1) if options.get("nbest", 1) > 1 else 0)
    assert [p.text for p in together[0].alternatives[:1]] == ([together[0].text] if "nbest" in options else [])


def test_prediction_leaves_the_model_in_its_mode() -> None:
    task = fitted()
    model = small_model(task).train()
    task.predict(model, ["ab"])
    assert model.training


def test_model_without_attention_has_no_weights() -> None:
    task = fitted()
    prediction = task.predict(small_model(task, Cho), ["abc"], beam=2)[0]
    assert prediction.weights is None
    assert prediction.attention is None
    assert prediction.text == task.target.tokeniser.decode(prediction.tokens)


def test_nothing_becomes_nothing() -> None:
    task = fitted()
    predictions = task.predict(small_model(task), ["", "ab", "  "], beam=1)
    assert [p.text for p in predictions[::2]] == ["", ""]
    assert task.predict(small_model(task), []) == []


def test_sampling_is_repeatable() -> None:
    task = fitted()
    model = small_model(task)
    first, second = (task.predict(model, ["abcab"], sample=True, nbest=4, seed=5)[0] for _ in range(2))
    assert [p.text for p in first.alternatives] == [p.text for p in second.alternatives]
    assert len({p.text for p in first.alternatives}) > 1
    assert [p.score for p in first.alternatives] == sorted((p.score for p in first.alternatives), reverse=True)


def test_figures_of_predictions() -> None:
    task = fitted(metrics=["exact_match", "token_accuracy", "length_to_failure", "cer"])
    predictions = [
        GeneratedText(text, 0.0, tokens=task.target.tokeniser.encode(text)) for text in ("bacba", "aa", "acbcbcb")
    ]
    figures = {name: figure.value for name, figure in task.score(predictions, EXAMPLES).items()}
    assert figures == pytest.approx(
        {
            "exact_match": 200 / 3,
            "token_accuracy": 1300 / 14,
            "length_to_failure": 100 * (1 + 1 / 3 + 1) / 3,
            "cer": 100 / 14,
        }
    )
    assert set(task.metrics) == set(figures)

    def score(numbers):
        return task.score([predictions[n] for n in numbers], [EXAMPLES[n] for n in numbers])

    bins = by_length([task.length(example) for example in EXAMPLES], score, width=3)
    assert [(b.low, b.high, b.figures["exact_match"].value) for b in bins] == [
        (1, 3, 0.0),
        (4, 6, 100.0),
        (7, 9, 100.0),
    ]


@pytest.mark.parametrize("joint", [True, False])
def test_saved_and_loaded(joint, tmp_path) -> None:
    task = fitted(joint=joint)
    task.save(tmp_path)
    other = Generation(source=Text(tokeniser="char"), joint=joint)
    other.load(tmp_path)
    assert other.sizes() == task.sizes()
    assert (other.longest_target, other.target_ratio) == (task.longest_target, task.target_ratio) == (7, 1.0)
    assert all(other.encode(example) == task.encode(example) for example in EXAMPLES)


def test_tokenisers_by_name_or_with_their_own_options() -> None:
    task = Generation(source=Text(tokeniser=BpeTokeniser(vocab_size=31)), target=Text(tokeniser="char"))
    assert isinstance(task.source.tokeniser, BpeTokeniser)
    assert isinstance(task.target.tokeniser, CharTokeniser)
    like = Generation(source=Text(tokeniser=BpeTokeniser(vocab_size=31))).target.tokeniser
    assert isinstance(like, BpeTokeniser)
    assert like.vocab_size == 31


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "txt"}, "Did you mean 'text'"),
        ({"joint": True, "target": Text(tokeniser="char")}, "one vocabulary"),
        ({"target": Number()}, "target must be the field text, got Number"),
        ({"label_smoothing": 1.0}, "label_smoothing must be .*got 1.0"),
        ({"metrics": ["blue"]}, "Did you mean 'bleu'"),
    ],
)
def test_impossible_arguments_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Generation(**arguments)


@pytest.mark.parametrize("options", [{"beam": 0}, {"nbest": 0}, {"beam": 2, "nbest": 3}, {"batch_size": 0}])
def test_impossible_searches_are_named(options) -> None:
    task = fitted()
    with pytest.raises(ValueError, match=r"(beam|nbest|batch_size)"):
        task.predict(small_model(task), ["abc"], **options)


def test_predictions_may_be_as_long_as_the_targets_were() -> None:
    """The limit is that of each source, at least the longest target, and grows with sources longer than any."""
    task = Generation(source=Text(tokeniser="char"))
    task.fit([{"source": "a", "target": "b" * 97}, {"source": "ab", "target": "a" * 51}])
    task.observe([(2, 98), (3, 52)])
    assert task.longest_target == 97
    assert task.target_ratio == (98 + 52) / (2 + 3)
    assert task.most_tokens(torch.tensor([1, 2, 7])).tolist() == [107, 2 * 60 + 10, 2 * 210 + 10]
    model = small_model(task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()  # all tokens are alike, and the end is not the first of them
    (cut,) = task.predict(model, ["a"], beam=1, forbidden=[EOS])
    assert (len(cut.tokens), cut.finished) == (2 * 60 + 10, False)
    (cut,) = task.predict(model, ["a"], beam=1, max_length=5, forbidden=[EOS])
    assert (len(cut.tokens), cut.finished) == (5, False)


def test_predictions_end_with_the_learned_positions() -> None:
    task = fitted()
    seed_everything(3)
    model = task.build(Transformer, dim=8, num_heads=2, encoder_layers=1, positions="learned", max_length=13)
    (cut,) = task.predict(model, ["abcab"], beam=2, forbidden=[EOS])
    assert not cut.finished
    assert len(cut.tokens) == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length_penality": 1.0}, "no option 'length_penality'. Did you mean 'length_penalty'"),
        ({"temperature": 0.5}, "temperature only affects sampling: set sample as well"),
        ({"beem": 3, "sample": True}, "Did you mean 'beam'"),
        ({"beam": 3, "sample": True}, "exclude each other"),
        ({"top_p": 0.5, "beam": 3}, "top_p only affects sampling: set sample as well"),
        ({"top_p": 1.5, "sample": True}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"top_k": 0, "sample": True}, "top_k must be from 1 to 2147483647, got 0"),
        ({"seed": 3}, "seed only affects sampling"),
        ({"nbest": 3, "beam": 2}, "nbest=3 needs a beam of at least 3, got beam=2"),
        ({"beam": 0}, "beam must be from 1 to 1000, got 0"),
        ({"length_penalty": -1.0}, "length_penalty must be from 0.0 to 100.0, got -1.0"),
        ({"min_length": 7, "max_length": 5}, "min_length=7 is more than max_length=5"),
        ({"prefix": "xyz"}, "prefix: the model's vocabulary cannot write 'xyz'"),
        ({"prefix": ["a", "b"]}, "one for each of 1, got 2"),
        ({"forbidden": "abc"}, "forbidden must be a list .*got 'abc'"),
        ({"forced": {0: "ab"}}, "'ab' is not one piece of the model's vocabulary but 'a', 'b'"),
        ({"forbidden": [99]}, "got 99"),
    ],
)
def test_impossible_search_options_are_named(options, message) -> None:
    task = fitted()
    with pytest.raises(ValueError, match=message):
        task.predict(small_model(task), ["abc"], **options)


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 3, "nbest": 3}, {"sample": True, "seed": 2, "nbest": 4}])
def test_predictions_keep_to_what_they_are_told(options) -> None:
    task = fitted()
    model = small_model(task)
    inputs = ["ab", "abcab", "c"]  # which the batches reorder
    told = {"min_length": 6, "max_length": 9, **options}

    def texts(**more) -> list[list[str]]:
        predictions = task.predict(model, inputs, batch_size=2, **told, **more)
        return [[h.text.replace("<unk>", "?") for h in p.alternatives or [p]] for p in predictions]

    assert all(text.startswith("ca") and 6 <= len(text) <= 9 for several in texts(prefix="ca") for text in several)
    for begun, several in zip(["b", "", "cc"], texts(prefix=["b", "", "cc"]), strict=True):
        assert all(text.startswith(begun) for text in several)
    assert not any("ab" in text or "c" in text for several in texts(forbidden=["ab", "c"]) for text in several)
    assert all(text[2] == "b" and text[4] == "a" for several in texts(forced={2: "b", 4: "a"}) for text in several)
