"""Documents: read, split, encoded, cut, padded, and what a model looked at in them."""

import json
from pathlib import Path

import pytest
import torch

from saccade import record
from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.data.storage import store
from saccade.fields import Document, fields
from saccade.models import HAN

CELL = Cell("reviews.csv", 7, "text", Path())
TEXTS = [["a good film .", "", "it ends well"], ["bad"], ["so so", "well . well ."]]


def fitted(**arguments):
    field = Document(**{"tokeniser": "pretokenised", "sentences": "given", **arguments})
    field.fit(TEXTS)
    return field


def test_reachable_by_short_name():
    assert fields.get("document") is Document


@pytest.mark.parametrize(
    ("way", "raw", "sentences"),
    [
        ("split", "A film. By Dr. Smith!", ["A film.", "By Dr. Smith!"]),
        ("split", ["A title", "One. Two."], ["A title", "One.", "Two."]),  # two columns
        ("split", 1984, ["1984"]),
        ("lines", "one. two.\n\n three \r\nfour", ["one. two.", " three ", "four"]),
        ("given", ["one. two.", "", None, "three"], ["one. two.", "", "", "three"]),
        ("given", ("one",), ["one"]),
    ],
)
def test_three_ways_to_sentences(way, raw, sentences):
    assert Document(sentences=way).read(raw, CELL) == sentences


@pytest.mark.parametrize(
    ("way", "raw", "message"),
    [
        ("split", "", r"reviews\.csv, line 7: the text is empty"),
        ("split", "  \n", "the text is empty"),
        ("split", [], "the text is empty"),
        ("lines", [" ", ""], "the text is empty"),
        ("given", ["", " "], "the text is empty"),
        ("given", "one. two.", "the text is not a list of sentences, as sentences=given requires. Give a list"),
        ("given", [["a"]], "the text is not text but list"),
        ("split", 2.5, "the text is not text but float"),
        ("split", "a\0b", "NUL"),
    ],
)
def test_bad_cells_are_named_with_their_place(way, raw, message):
    with pytest.raises(BadRow, match=message):
        Document(sentences=way).read(raw, CELL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sentences": "line"}, "Unknown sentences 'line'. Did you mean 'lines'"),
        ({"language": "English"}, "language must be an ISO 639 code such as en, got 'English'"),
        ({"max_words": 0}, "max_words must be 1 or more, got 0"),
        ({"max_sentences": 0}, "max_sentences must be 1 or more, got 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Document(**arguments)


def test_encoding_and_padding():
    field = fitted()
    encoded = [field.encode(value) for value in TEXTS]
    assert [[len(sentence) for sentence in document] for document in encoded] == [[4, 0, 3], [1], [2, 4]]
    padded = field.pad(encoded)
    assert padded["values"].shape == padded["mask"].shape == (3, 3, 4)
    for document, ids, mask in zip(encoded, padded["values"], padded["mask"], strict=True):
        assert [row[real].tolist() for row, real in zip(ids, mask, strict=True)] == [
            *document,
            *[[]] * (3 - len(document)),
        ]
    assert not padded["values"][~padded["mask"]].any()
    assert [field.size(document) for document in encoded] == [7, 1, 6]
    assert field.sizes() == {"vocab": field.text.tokeniser.size} != Document().sizes()
    nothing = field.pad([field.encode(field.blank)])
    assert nothing["mask"].shape == (1, 1, 1)
    assert not nothing["mask"].any()


def test_long_documents_are_cut():
    field = fitted(max_sentences=2, max_words=3)
    encoded = [field.encode(value) for value in TEXTS]
    assert [field.truncated(document) for document in encoded] == [
        "more than max_sentences=2 sentences and sentences of more than max_words=3 tokens",
        None,
        "sentences of more than max_words=3 tokens",
    ]
    assert field.pad(encoded)["mask"].sum(-1).tolist() == [[3, 0], [1, 0], [2, 3]]
    assert [field.size(document) for document in encoded] == [3, 1, 5]
    assert field.axis(TEXTS[0]).pieces == ["a", "good", "film"]


def test_storage_keeps_sentences(tmp_path):
    field = fitted()
    rows = [{"text": field.encode(value)} for value in [*TEXTS, []]]
    stored = store(rows, tmp_path / "rows.arrow")
    assert [stored[place] for place in range(4)] == rows == list(stored)


def test_what_was_learned_is_saved_and_loaded(tmp_path):
    field = fitted()
    field.save(tmp_path)
    other = Document()
    other.load(tmp_path)
    assert other.encode(TEXTS[0]) == field.encode(TEXTS[0])
    assert field.learned() == f"{field.text.tokeniser.size} pieces (pretokenised)"
    (tmp_path / "tokeniser.json").write_text(json.dumps({"kind": "word"}))
    with pytest.raises(ArtifactError, match=r"tokeniser\.json"):
        other.load(tmp_path)


def test_the_axis_has_words_and_sentences():
    field = Document(tokeniser="word")
    field.fit(TEXTS)
    axis = field.axis(["it's well.", " ", "so"])
    assert axis.pieces == ["it", "'", "s", "well", ".", "so"]
    assert axis.words == [[0, 1, 2], [3, 4], [5]]
    assert [list(group) for group in axis.sentences] == [[0, 1, 2, 3, 4], [5]]
    assert field.show([" a\nb.", "c"]) == "a b. c"
    assert fitted().unknown(["a zebra .", "bad", "yak"]) == ["zebra", "yak"]


class TestAttention:
    """Weights come back to the words and sentences they belong to."""

    def looked(self, values, **options):
        field = fitted()
        torch.manual_seed(0)
        han = HAN(vocab=field.sizes()["vocab"], classes=2, embedding_dim=5, hidden_dim=3, **options).eval()
        for parameter in han.parameters():
            parameter.data.normal_()
        padded = field.pad([field.encode(value) for value in values])
        with record(han) as trace, torch.no_grad():
            han(padded["values"], padded["mask"])
        return field, han, trace

    def alone(self, field, han, value):
        """The weights of each sentence's words, and of the sentences, computed one by one."""
        ids = [torch.tensor([sentence]) for sentence in field.encode(value) if sentence]
        words, vectors = [], []
        for sentence in ids:
            real = torch.ones_like(sentence, dtype=torch.bool)
            states = han.words.encoder(han.embedding(sentence), real).states
            words.append(han.words.pooling(None, states).weights[0, 0])
            vectors.append(han.words(han.embedding(sentence), real)[0])
        real = torch.ones(1, len(vectors), dtype=torch.bool)
        states = han.sentences.encoder(torch.stack(vectors).unsqueeze(0), real).states
        return words, han.sentences.pooling(None, states).weights[0, 0]

    @torch.no_grad()
    def test_of_a_batch_and_of_one(self):
        many = [[f"{'well ' * (3 * n % 41 + 1)}." for n in range(9)], *TEXTS]
        field, han, trace = self.looked(many)
        batch = field.attended(many, trace)
        for value, (names, weights, _) in zip(many, batch, strict=True):
            words, sentences = self.alone(field, han, value)
            expected = torch.cat([weight * own for weight, own in zip(sentences, words, strict=True)])
            torch.testing.assert_close(weights, expected)
            assert names == " ".join(value).split()
            assert float(weights.sum()) == pytest.approx(1.0)
            field, _, one = self.looked([value])
            above, within, whole = field.maps(value, one, "good")
            assert [above.name, within.name, whole.name] == ["sentences.pooling", "words.pooling", "document"]
            torch.testing.assert_close(within.weights[0, 0], torch.cat(words))
            torch.testing.assert_close(whole.weights[0, 0], expected)
            torch.testing.assert_close(above.weights[0, 0], sentences)
            assert above.keys.pieces == [sentence for sentence in value if sentence]
            assert len(above.keys) == len(whole.keys.sentences)

    def test_with_attention_at_one_level(self):
        value = TEXTS[0]
        field, _, trace = self.looked([value], sentence_pooling="max")
        (only,) = field.maps(value, trace, "good")
        assert only.name == "words.pooling"
        assert float(only.weights.sum()) == pytest.approx(2.0)  # 1 for each sentence
        ((names, weights, _),) = field.attended([value], trace)
        assert len(names) == len(weights) == 7
        field, _, trace = self.looked([value], word_pooling="average")
        (only,) = field.maps(value, trace, "good")
        assert (only.name, only.keys.pieces) == ("sentences.pooling", ["a good film .", "it ends well"])
        assert field.attended([value], trace)[0][0] == only.keys.pieces
        field, _, trace = self.looked([value], word_pooling="average", sentence_pooling="average")
        assert field.maps(value, trace, "good") == field.attended([value], trace) == []

    def test_positions_of_words(self):
        field = fitted(max_sentences=2, max_words=3)
        value = ["a good film .", "", "it ends well", "bad"]
        read = [field.axis(value).pieces[place] for word in field.words(value) for place in word]
        assert len(field.words(value)) == len(field.show(value).split()) == 8
        assert read == ["a", "good", "film"]
        assert field.words(value)[3:] == [[]] * 5

    def test_of_nothing(self):
        field, _, trace = self.looked([[]])
        assert field.maps([], trace, "good") == []
        field, _, trace = self.looked([[], TEXTS[1]])
        assert [seen.names for seen in field.attended([[], TEXTS[1]], trace)] == [[], ["bad"]]
