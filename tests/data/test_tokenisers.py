import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.artifacts import ArtifactError
from saccade.data.special import BOS, EOS, NAMES, PAD, UNK
from saccade.data.tokenisers import Tokeniser, UnigramTokeniser, tokenisers
from saccade.data.tokenisers.subwords import settled

KINDS = tokenisers.names()
TEXTS = [
    'Hello, (world)! "It\'s 3.14 -- or so", she said.',
    "Über den Wolken: ﷺ naïve façade, 日本語 नमस्ते ... <s> </s> <unk> <pad>",
    "a_b --> c&d; e/f (g) [h] {i} ▁under ￭joined ½ ﬁ",
    "don't stop-me now!?",
]


def test_every_kind_is_there():
    assert KINDS == ["bpe", "byte_bpe", "char", "pretokenised", "tagged", "unigram", "word"]


@pytest.mark.parametrize("kind", KINDS)
def test_known_text_round_trips(kind):
    tokeniser = tokenisers.create(kind).fit(TEXTS)
    for text in TEXTS:
        ids = tokeniser.encode(text)
        assert min(ids) > UNK  # neither a special id nor anything unknown, "<s>" in the text included
        assert tokeniser.decode(ids) == tokeniser.normalise(text)
        assert tokeniser.decode([BOS, *ids, EOS, PAD, PAD, ids[0]]) == tokeniser.normalise(text)
        assert tokeniser.pieces(ids) == [tokeniser.pieces([token])[0] for token in ids]
    assert (
        max(max(tokeniser.encode(text)) for text in TEXTS) == tokeniser.size - 1 or "bpe" in kind or kind == "unigram"
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(), min_size=1, max_size=3))
def test_any_text_round_trips(kind, texts):
    tokeniser = tokenisers.create(kind).fit(texts)
    for text in texts:
        ids = tokeniser.encode(text)
        assert all(UNK < token < tokeniser.size for token in ids)
        assert tokeniser.decode(ids) == tokeniser.normalise(text)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(text=st.text(alphabet="ab ,.-()'é\u0301\u200d_▁￭\t", max_size=40))
def test_marks_and_signs_round_trip(kind, text):
    tokeniser = tokenisers.create(kind).fit([text])
    normal = tokeniser.normalise(text)
    assert tokeniser.decode(tokeniser.encode(text)) == normal == tokeniser.normalise(normal)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(text=st.text(alphabet="ab ,.-()'é\u0301\u200d_▁￭\t日", max_size=40))
def test_words_stand_between_spaces_whatever_is_known(kind, text):
    for tokeniser in (tokenisers.create(kind).fit([text]), tokenisers.create(kind).fit(["ab. a (b"])):
        words, ids = tokeniser.words(text), tokeniser.encode(text)
        normal = tokeniser.normalise(text).split()
        assert len(words) == len(normal) == len(text.split())
        places = [place for word in words for place in word]
        assert places == sorted(set(places))
        assert set(places) <= set(range(len(ids)))
        spaces = text.strip().count(" ") if kind in ("char", "tagged") else 0
        if kind == "byte_bpe":  # which keeps all spaces
            spaces = text.count(" ")
        assert len(ids) - len(places) <= spaces + text.count("\t")
        if UNK not in ids:
            assert [tokeniser.join(tokeniser.pieces([ids[p] for p in word])) for word in words] == normal
            assert tokeniser.group(tokeniser.pieces(ids)) == words


@pytest.mark.parametrize("kind", KINDS)
def test_saved_tokenisers_are_the_same(kind, tmp_path):
    tokeniser = tokenisers.create(kind, lowercase=True).fit(TEXTS)
    tokeniser.save(tmp_path / "tokeniser.json")
    loaded = Tokeniser.load(tmp_path / "tokeniser.json")
    assert type(loaded) is type(tokeniser)
    assert loaded.options() == tokeniser.options()
    assert loaded.dumps() == tokeniser.dumps() == (tmp_path / "tokeniser.json").read_text(encoding="utf-8")
    sent = pickle.loads(pickle.dumps(tokeniser))
    for text in [*TEXTS, "ungesehen ☃ Ω"]:
        assert loaded.encode(text) == sent.encode(text) == tokeniser.encode(text)
    assert json.loads(tokeniser.dumps())["kind"] == kind


@pytest.mark.parametrize("kind", KINDS)
def test_ids_do_not_depend_on_the_run(kind):
    first = tokenisers.create(kind).fit(TEXTS * 2)
    assert tokenisers.create(kind).fit(TEXTS * 2).dumps() == first.dumps()
    if kind != "unigram":  # whose sums depend on the order
        assert tokenisers.create(kind).fit((TEXTS * 2)[::-1]).dumps() == first.dumps()


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_come_first_and_unseen_is_unknown(kind):
    tokeniser = tokenisers.create(kind).fit(["abc abd abc"])
    assert tokeniser.pieces(range(4)) == list(NAMES)
    if kind == "byte_bpe":  # which knows every byte
        assert tokeniser.decode(tokeniser.encode("abc ☃")) == "abc ☃"
    else:
        assert UNK in tokeniser.encode("abc ☃")
        assert "<unk>" in tokeniser.decode(tokeniser.encode("abc ☃"))
    assert tokeniser.encode("") == []
    with pytest.raises(ValueError, match=f"got {tokeniser.size}"):
        tokeniser.pieces([tokeniser.size])


def test_word_pieces_show_which_touch():
    tokeniser = tokenisers.create("word").fit(['Hello, (world)! "no" well-known ...'])
    pieces = tokeniser.pieces(tokeniser.encode('Hello, (world)! "no" well-known ...'))
    assert " ".join(pieces) == 'Hello ￭, (￭ world ￭) ￭! "￭ no ￭" well ￭-￭ known . ￭. ￭.'
    assert tokeniser.decode(tokeniser.encode("(Hello) -world")) == "(Hello) <unk> world"


def test_word_keeps_vowel_signs_with_their_word():
    tokeniser = tokenisers.create("word").fit(["नमस्ते दुनिया"])
    assert tokeniser.pieces(tokeniser.encode("नमस्ते दुनिया")) == ["नमस्ते", "दुनिया"]


def test_subwords_part_signs_from_words_and_mark_beginnings():
    for kind in ("bpe", "unigram"):
        tokeniser = tokenisers.create(kind, vocab_size=40).fit(["dog dog. (dog) dog, dogs"] * 20)
        assert tokeniser.pieces(tokeniser.encode("dog.")) == ["▁dog", "."]


def test_the_frequent_ones_get_an_id():
    tokeniser = tokenisers.create("word", vocab_size=6).fit(["c b b a a d"])
    assert tokeniser.size == 6
    assert tokeniser.pieces([4, 5]) == ["a", "b"]  # equally frequent: in alphabetical order
    assert tokeniser.encode("a b c d") == [4, 5, UNK, UNK]
    assert tokenisers.create("word", min_frequency=2).fit(["c b b a a d"]).size == 6
    assert tokenisers.create("bpe", vocab_size=12).fit(["abcabcabc abc"] * 9).size <= 12


def test_lowercase():
    tokeniser = tokenisers.create("word", lowercase=True).fit(["Der Hund"])
    assert tokeniser.decode(tokeniser.encode("DER hund")) == "der hund"


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match="vocab_size includes the 4 special ids"):
        tokenisers.create("word", vocab_size=4)
    with pytest.raises(ValueError, match="min_frequency"):
        tokenisers.create("word", min_frequency=0)
    with pytest.raises(ValueError, match="vocab_size=10 leaves no room"):
        tokenisers.create("bpe", vocab_size=10).fit(["abcdefghijkl"])
    for kind in KINDS:
        with pytest.raises(RuntimeError, match="fit"):
            tokenisers.create(kind).encode("a")
        with pytest.raises(RuntimeError, match="fit"):
            tokenisers.create(kind).save(tmp_path / "x.json")
    with pytest.raises(ValueError, match="Did you mean 'unigram'"):
        tokenisers.create("unigramm")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"x\.json is not a tokeniser"):
        Tokeniser.load(tmp_path / "x.json")
    newer = tokenisers.create("char").fit(["a"]).dumps().replace('"version": 2', '"version": 99')
    with pytest.raises(ArtifactError, match="newer"):
        Tokeniser.loads(newer)


def test_settled_scores_do_not_depend_on_the_order_of_leftover_characters():
    one = [("ab", -1.0), ("c", -5.0), ("d", -4.9999)]
    two = [("ab", -1.0 + 1e-12), ("c", -4.9999), ("d", -5.0)]
    assert settled(one) == settled(two)
    assert UnigramTokeniser(vocab_size=30).fit(["ab"]).size > 4


def test_tags_are_pieces_of_their_own():
    tokeniser = tokenisers.create("tagged").fit(["run <V;V.PTCP;PRS>", "go on <V>"])
    assert tokeniser.pieces(tokeniser.encode("run <V;PRS>")) == ["r", "u", "n", "<V>", "<PRS>"]
    assert tokeniser.decode(tokeniser.encode("go  on <V>")) == "go on <V>"
    assert tokeniser.words("go on <V;PRS>") == [[0, 1], [3, 4], [5, 6]]
    for text in ("a<V>", "<V> a", "<V;N> <N>", "< V>", "<>", "a <V;;N>", "> <V>"):
        assert tokeniser.join(tokeniser.split(text)) == text


HOSTILE = {
    "deep": lambda d: "[" * 100_000,
    "digits": lambda d: json.dumps(d).replace('"version": 2', '"version": ' + "9" * 5000),
    "not an object": lambda d: "[]",
    "a key twice": lambda d: json.dumps(d)[:-1] + ', "kind": "char"}',
    "half a character": lambda d: json.dumps({**d, "vocabulary": [*d["vocabulary"], "\ud800"]}),
    "no version": lambda d: json.dumps({k: v for k, v in d.items() if k != "version"}),
    "no kind": lambda d: json.dumps({k: v for k, v in d.items() if k != "kind"}),
    "no options": lambda d: json.dumps({k: v for k, v in d.items() if k != "options"}),
    "no vocabulary": lambda d: json.dumps({k: v for k, v in d.items() if k != "vocabulary"}),
    "version": lambda d: json.dumps({**d, "version": "2"}),
    "kind": lambda d: json.dumps({**d, "kind": ["char"]}),
    "unknown kind": lambda d: json.dumps({**d, "kind": "os.system"}),
    "options": lambda d: json.dumps({**d, "options": 7}),
    "unknown option": lambda d: json.dumps({**d, "options": {**d["options"], "shell": True}}),
    "option's type": lambda d: json.dumps({**d, "options": {**d["options"], "vocab_size": "9"}}),
    "option's value": lambda d: json.dumps({**d, "options": {**d["options"], "vocab_size": -1}}),
    "switch": lambda d: json.dumps({**d, "options": {**d["options"], "lowercase": 1}}),
    "vocabulary": lambda d: json.dumps({**d, "vocabulary": {"a": 1}}),
    "a number as a piece": lambda d: json.dumps({**d, "vocabulary": [*d["vocabulary"], 7]}),
    "an empty piece": lambda d: json.dumps({**d, "vocabulary": [*d["vocabulary"], ""]}),
    "a piece twice": lambda d: json.dumps({**d, "vocabulary": [*d["vocabulary"], d["vocabulary"][-1]]}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_by_name(kind, name, tmp_path):
    content = json.loads(tokenisers.create(kind).fit(TEXTS).dumps())
    (tmp_path / "x.json").write_text(HOSTILE[name](content))
    with pytest.raises(ArtifactError, match=r"x\.json (is|was)") as caught:
        Tokeniser.load(tmp_path / "x.json")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("kind", "change", "complaint"),
    [
        ("bpe", {"vocabulary": ["<s>", "a"]}, "vocabulary does not begin with"),
        ("bpe", {"merges": ["a"]}, r"merges\[0\] is 'a', not two pieces"),
        ("bpe", {"merges": ["zz y"]}, r"merges\[0\] is 'zz y', not two pieces"),
        ("bpe", {"merges": [["a", "b"]]}, r"merges\[0\] is a list, not a string"),
        ("unigram", {"scores": []}, "scores has 0 values, not"),
        ("unigram", {"vocabulary": [], "scores": []}, "vocabulary does not begin with"),
        ("unigram", {"scores": float("nan")}, r"scores\[4\] is NaN"),
        ("unigram", {"scores": "1.0"}, r'scores\[4\] is "1.0", not a number'),
    ],
)
def test_hostile_subwords_are_refused_by_key(kind, change, complaint):
    content = json.loads(tokenisers.create(kind).fit(TEXTS).dumps())
    if not isinstance(change.get("scores", []), list):
        change = {"scores": [*content["scores"][:4], change["scores"], *content["scores"][5:]]}
    with pytest.raises(ArtifactError, match=complaint):
        Tokeniser.loads(json.dumps({**content, **change}))
