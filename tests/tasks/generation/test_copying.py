"""Words outside the vocabulary: encoded, learned, written, explained and aligned."""

import json

import pytest
import torch

from saccade.data.special import EOS, UNK
from saccade.data.tokenisers import BpeTokeniser, CharTokeniser, UnigramTokeniser, WordTokeniser
from saccade.fields import Text
from saccade.models import CopyNet, PointerGenerator, RNNSearch
from saccade.tasks import Generation
from saccade.tasks.generation.extension import Extension
from saccade.tasks.generation.rare_words import unknown_words
from saccade.training import seed_everything

EXAMPLES = [
    {"source": "who saw Anna ?", "target": "Anna was seen"},
    {"source": "who saw Berta ?", "target": "Berta was seen"},
    {"source": "who met Carla ?", "target": "Carla was met"},
    {"source": "who saw him ?", "target": "him was seen"},
    {"source": "who saw him ?", "target": "him was seen"},
]
SIZES = {"embedding_dim": 5, "hidden_dim": 7}


def fitted(tokeniser=None, **arguments) -> Generation:
    tokeniser = tokeniser or WordTokeniser(min_frequency=2)
    task = Generation(source=Text(tokeniser=tokeniser), joint=True, copying=True, **arguments)
    task.fit(EXAMPLES)
    task.observe([task.size(task.encode(example)) for example in EXAMPLES])
    return task


def small_model(task, kind=CopyNet, **arguments):
    seed_everything(3)
    model = task.build(kind, **SIZES, **arguments).eval()
    task.check(model)
    return model


def test_unknown_words_of_a_source_are_numbered_and_others_keep_their_ids():
    task = fitted()
    tokeniser, size = task.target.tokeniser, task.target.tokeniser.size
    row = task.encode({"source": "who saw Otto and Otto or Ida ?", "target": "Otto was seen by Ida Lou"})
    known = [tokeniser.id_of(word) for word in ("who", "saw")]
    assert row["words"] == [*known, size, size + 1, size, size + 2, size + 3, tokeniser.id_of("?"), EOS]
    was, seen = map(tokeniser.id_of, ("was", "seen"))
    # "by" and "Lou" are neither in the vocabulary nor in the source.
    assert row["target"] == [size, was, seen, UNK, size + 3, UNK, EOS]
    assert UNK in row["source"]
    extension = task.extension({"source": "who saw Otto ?"})
    assert extension.decode([size, was, seen, EOS]) == "Otto was seen"
    assert extension.pieces([size]) == ["Otto"]
    with pytest.raises(ValueError, match=f"between 0 and {size}, got {size + 1}"):
        extension.pieces([size + 1])


@pytest.mark.parametrize("kind", [BpeTokeniser, UnigramTokeniser])
def test_a_word_that_subwords_would_spell_is_copied_whole(kind):
    texts = ["the cat sat on the mat", "the dog sat, too", "a cat saw the dog"] * 5
    tokeniser = kind(vocab_size=40).fit(texts)
    source, target = "the cat saw Xylander-Z.", "Xylander sat, Xylander-Z"
    units = tokeniser.units(source)
    assert [unit for unit, _ in units][-4:] == ["▁Xylander", "-", "Z", "."]
    assert sorted(place for _, places in units for place in places) == list(range(len(tokeniser.encode(source))))
    extension = Extension(tokeniser, tokeniser, source)
    ids = extension.encode(target)
    assert "▁Xylander" in extension.extra
    assert extension.decode(ids) == target
    copied = tokeniser.size + extension.extra.index("▁Xylander")
    assert ids.count(copied) == 2
    places = next(places for unit, places in units if unit == "▁Xylander")
    assert len(places) > 1
    assert {extension.said[place] for place in places} == {copied}
    if tokeniser.id_of("▁cat") != UNK:  # a word that is one piece keeps its id
        (cat,) = next(places for unit, places in units if unit == "▁cat")
        assert [extension.said[cat]] == tokeniser.encode("cat")


def test_characters_are_copied_one_by_one():
    tokeniser = CharTokeniser().fit(["abc"])
    extension = Extension(tokeniser, tokeniser, "añb")
    assert extension.extra == ["ñ"]
    assert extension.decode(extension.encode("ñññ")) == "ñññ"
    assert tokeniser.id_of("<s>") == UNK


@pytest.mark.parametrize(
    ("kind", "arguments"), [(CopyNet, {}), (PointerGenerator, {}), (RNNSearch, {"head": "pointer_generator"})]
)
def test_everything_a_run_does_works_with_words_outside_the_vocabulary(kind, arguments):
    task = fitted(metrics=["exact_match", "token_accuracy", "unknown_words"])
    model = small_model(task, kind, **arguments)
    batch = task.collate([task.encode(example) for example in EXAMPLES])
    assert torch.isfinite(task.loss(model.train(), batch).total)
    model.eval()
    inputs = ["who saw Otto ?", "who met Ida and Otto and him ?"]
    for options in ({"beam": 1}, {"beam": 3, "nbest": 2}, {"sample": True, "seed": 1}):
        answers = task.predict(model, inputs, max_length=5, **options)
        for text, answer in zip(inputs, answers, strict=True):
            assert len(answer.origins) == len(answer.tokens) + answer.finished
            for origin in answer.origins:
                assert origin.way in ("generate", "copy")
                if origin.way == "copy":
                    assert [*text.split(), "</s>"][origin.position] == origin.key == origin.token
            assert json.loads(json.dumps(task.as_json({"source": text}, answer)))["nbest"][0]["origins"]
    forced = task.predict(model, ["who saw Otto ?"], prefix="was", max_length=3)
    assert forced[0].text.startswith("was")
    emitted = []
    task.stream(model, {"source": "who saw Otto ?"}, task.options.of({"max_length": 3}), emitted.append)
    assert all(set(each) == {"token", "text", "weights"} for each in emitted)
    figures = task.evaluate(model, EXAMPLES, beam=1)
    assert set(figures) == {"exact_match", "token_accuracy", "unknown_words"}
    (item,) = task.explain(model, [{"source": "who saw Otto ?", "target": "Otto was seen"}], faithfulness=True)
    assert any(measure.name == "origins" and "Otto" in measure.value for measure in item.measures)
    rows = item.maps[-1].queries
    assert rows.origins is not None
    assert dict(zip(rows.pieces, rows.origins, strict=True))["Otto"] == "copied from word 3 (Otto)"
    (pair,) = task.align(model, [("who saw Otto ?", "Otto was seen")])
    assert pair.weights.shape == (3, 4)
    (pair,) = task.align(model, [("who saw Otto ?", "Otto was seen")], subwords=True)
    assert pair.target == ["Otto", "was", "seen"]


def test_a_prediction_does_not_depend_on_its_batch():
    task = fitted()
    model = small_model(task, PointerGenerator)
    inputs = ["who saw Otto ?", "who met Ida and Otto and him and Eva and Max ?", "Max"]
    together = task.predict(model, inputs, beam=2, max_length=6)
    for text, answer in zip(inputs, together, strict=True):
        (alone,) = task.predict(model, [text], beam=2, max_length=6)
        assert alone.text == answer.text
        assert alone.log_prob == pytest.approx(answer.log_prob, abs=1e-5)
        assert [o.way for o in alone.origins] == [o.way for o in answer.origins]


def test_copying_learns_words_that_training_never_saw():
    seed_everything(1)
    letters = "abcdefgh"
    names = [a + b + c for a in letters for b in letters for c in letters]
    examples = [{"source": f"say {name} now", "target": f"{name} said"} for name in names]
    task = Generation(source=Text(tokeniser=WordTokeniser(min_frequency=2)), joint=True, copying=True)
    task.fit(examples)
    model = task.build(CopyNet, embedding_dim=8, hidden_dim=16)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    rows = [task.encode(example) for example in examples]
    for step in range(25):
        loss = task.loss(model, task.collate(rows[16 * step : 16 * step + 16]))
        optimiser.zero_grad()
        (loss.total / loss.count).backward()
        optimiser.step()
    answers = task.predict(model.eval(), ["say Zarathustra now", "say 42 now"], beam=1)
    assert [answer.text for answer in answers] == ["Zarathustra said", "42 said"]
    first = answers[0].origins[0]
    assert (first.way, first.position, first.word, first.key) == ("copy", 1, 1, "Zarathustra")
    assert first.share == 1.0


def test_task_and_model_must_agree():
    task = fitted()
    with pytest.raises(ValueError, match=r"set task\.copying to no"):
        task.check(task.build(RNNSearch, **SIZES))
    plain = Generation(source=Text(tokeniser="word"), joint=True)
    plain.fit(EXAMPLES)
    with pytest.raises(ValueError, match=r"set task\.copying to yes"):
        plain.check(plain.build(CopyNet, **SIZES))
    with pytest.raises(ValueError, match="copying=True takes words from one text"):
        Generation(source="number", target=Text(), copying=True)


def test_unknown_words_are_counted_as_often_as_wanted():
    tokeniser = WordTokeniser().fit(["a b"])
    figure = unknown_words(tokeniser, ["a x x", "b"], ["x y x b", "z"])
    assert figure.value == pytest.approx(100 * 2 / 4)
    assert "4 words" in figure.signature
    assert unknown_words(tokeniser, ["a"], ["a"]).value == 0.0


def test_tokenisers_that_split_differently_are_refused():
    with pytest.raises(ValueError, match=r"split both sides alike.*got bpe and word"):
        Generation(source=Text(tokeniser="bpe"), target=Text(tokeniser="word"), copying=True)
