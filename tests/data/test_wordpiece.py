"""WordPiece against the greedy loop of its definition, and what is read from files."""

import json
import pickle

import pytest

from saccade.artifacts import ArtifactError
from saccade.data.tokenisers.bert_folder import read_wordpiece, wordpiece_files
from saccade.data.tokenisers.wordpiece import LONGEST_WORD, SPECIAL, WordPiece

TEXTS = ["the lowest newer low tower", "a new low, a lower tower: the newest!", "Über low 東京 don't"] * 3


def fitted(**options):
    return WordPiece(vocab_size=83, **options).fit(TEXTS)


def greedy(word, vocabulary):
    """The definition: the longest piece that fits, again and again; the whole word is unknown if none does."""
    pieces, start = [], 0
    while start < len(word):
        ends = range(len(word), start, -1)
        found = next((p for end in ends if (p := "##" * (start > 0) + word[start:end]) in vocabulary), None)
        if found is None:
            return ["[UNK]"]
        pieces.append(found)
        start += len(found) - 2 * (start > 0)
    return pieces


def test_words_are_split_greedily():
    tokeniser = fitted()
    vocabulary = set(tokeniser.vocabulary)
    assert tuple(tokeniser.vocabulary[:5]) == SPECIAL
    for word in ["low", "lowest", "newtower", "towering", "wow", "tower", "l", "est", "xyz", "lowx", "東"]:
        found = tokeniser.pieces(tokeniser.encode(word))
        assert found == greedy(word, vocabulary), word
    assert any(piece.startswith("##") and len(piece) > 3 for piece in vocabulary)


def test_signs_accents_and_chinese_characters():
    tokeniser = fitted()
    assert tokeniser.join(tokeniser.pieces(tokeniser.encode("LOW,low"))) == "low , low"
    assert tokeniser.encode("Über") == tokeniser.encode("uber")
    assert tokeniser.encode("東京") == tokeniser.encode("東 京")
    assert tokeniser.encode("lo\x00w\u200d") == tokeniser.encode("low")
    assert fitted(lowercase=False).encode("LOW") != fitted(lowercase=False).encode("low")
    kept = fitted(strip_accents=False, split_chinese=False)
    assert kept.encode("Über") == kept.encode("über")
    assert len(kept.encode("東京")) <= 2
    assert tokeniser.encode("low" * (LONGEST_WORD // 3 + 1)) == [tokeniser.special("[UNK]")]


def test_special_names_in_a_text_are_special_tokens():
    tokeniser = fitted()
    assert tokeniser.encode("low [MASK]") == [*tokeniser.encode("low"), tokeniser.special("[MASK]")]


def test_spans_say_where_pieces_stand():
    tokeniser = fitted()
    text = "  Newest, don't"
    ids, spans = tokeniser.split(text)
    assert ids == tokeniser.encode(text)
    pieces = [piece.removeprefix("##") for piece in tokeniser.pieces(ids)]
    assert [text[start:end].lower() for start, end in spans] == pieces


def test_it_is_saved_and_read_back(tmp_path):
    tokeniser = fitted(lowercase=False, strip_accents=True, split_chinese=False)
    assert fitted(lowercase=False, strip_accents=True, split_chinese=False).dumps() == tokeniser.dumps()
    tokeniser.save(tmp_path / "w.json")
    for other in (WordPiece.load(tmp_path / "w.json"), pickle.loads(pickle.dumps(tokeniser))):
        assert other.dumps() == tokeniser.dumps()
        assert other.encode_all(TEXTS) == tokeniser.encode_all(TEXTS)


def test_rare_letters_are_left_out_where_room_is_short():
    texts = ["ab ab ab abab", "".join(chr(0x3B1 + n) for n in range(20))]
    tokeniser = WordPiece(vocab_size=23).fit(texts)
    assert tokeniser.size <= 23
    assert tokeniser.pieces(tokeniser.encode("abab")) == ["abab"]
    assert tokeniser.encode(texts[1]) == [tokeniser.special("[UNK]")]
    assert WordPiece().fit([]).vocabulary == list(SPECIAL)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="5 special tokens and must be larger, got 5"):
        WordPiece(vocab_size=5)
    with pytest.raises(RuntimeError, match="no vocabulary yet"):
        WordPiece().encode("a")
    with pytest.raises(ValueError, match=r"no \[MASK\]"):
        WordPiece().set(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {**d, "format": "other"}, "not a WordPiece tokeniser"),
        (lambda d: {**d, "version": 99}, "version is 99"),
        (lambda d: {**d, "options": {**d["options"], "normalizer": "x"}}, r"options\.normalizer is not a key"),
        (lambda d: {**d, "options": {**d["options"], "lowercase": 1}}, r"options\.lowercase is 1"),
        (lambda d: {**d, "options": {**d["options"], "vocab_size": 2}}, r"options\.vocab_size is 2"),
        (lambda d: {**d, "vocabulary": [*d["vocabulary"], "low"]}, "contains a piece twice"),
        (lambda d: {**d, "vocabulary": ["low"]}, r"no \[PAD\]"),
        (lambda d: {**d, "vocabulary": [*d["vocabulary"], 7]}, r"vocabulary\[\d+\] is 7"),
        (lambda d: [], "not a WordPiece tokeniser"),
    ],
)
def test_hostile_files_are_refused(tmp_path, change, message):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(change(json.loads(fitted().dumps()))))
    with pytest.raises(ArtifactError, match=message):
        WordPiece.load(path)


def folder(path, *, lines=None, size=None, **files):
    """A folder as the `transformers` library writes it; JSON files by their names without suffix."""
    vocabulary = fitted().vocabulary if lines is None else lines
    if vocabulary:
        (path / "vocab.txt").write_bytes("\n".join(vocabulary).encode())
    (path / "config.json").write_text(json.dumps({"vocab_size": len(vocabulary) if size is None else size}))
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


def test_folders_are_read_and_written(tmp_path):
    tokeniser = fitted(lowercase=False)
    (tmp_path / "a").mkdir()
    for name, content in wordpiece_files(tokeniser, 53).items():
        (tmp_path / "a" / name).write_bytes(content)
    (tmp_path / "a" / "config.json").write_text(json.dumps({"vocab_size": tokeniser.size}))
    again = read_wordpiece(tmp_path / "a")
    assert again.vocabulary == tokeniser.vocabulary
    assert again.encode_all(TEXTS) == tokeniser.encode_all(TEXTS)


def test_the_vocabulary_may_be_in_tokenizer_json(tmp_path):
    vocabulary = fitted().vocabulary
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    saved = {"normalizer": {"type": "BertNormalizer", "lowercase": False}, "model": {"vocab": ids}}
    read = read_wordpiece(folder(tmp_path, lines=[], size=len(ids) + 3, tokenizer=saved))
    assert read.vocabulary[: len(ids)] == vocabulary
    assert read.vocabulary[len(ids) :] == [f"[unused {len(ids) + n}]" for n in range(3)]
    assert not read.lowercase


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lines": []}, "neither vocab.txt nor a vocabulary"),
        ({"lines": [*SPECIAL, "a", "a"]}, "the piece 'a' twice"),
        ({"lines": [*SPECIAL, "", "a"]}, "an empty piece"),
        ({"lines": ["a", "b"]}, r"not a vocabulary of BERT: The vocabulary has no \[PAD\]"),
        ({"lines": [*SPECIAL, "a"], "size": 3}, "6 pieces, but the model has only 3 embeddings"),
        ({"lines": [], "size": 9, "tokenizer": {"model": {"vocab": {"a": 7}}}}, "its ids are not the numbers from 0"),
        ({"lines": [], "size": 9, "tokenizer": {"model": {"vocab": {"a": "7"}}}}, 'vocab.a is "7"'),
        ({"tokenizer_config": {"do_lower_case": "yes"}}, 'do_lower_case is "yes"'),
        ({"size": 10**9}, "vocab_size is 1000000000"),
    ],
)
def test_hostile_folders_are_refused(tmp_path, arguments, message):
    with pytest.raises(ArtifactError, match=message):
        read_wordpiece(folder(tmp_path, **arguments))


def test_a_vocabulary_that_is_not_text_is_refused(tmp_path):
    folder(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ArtifactError, match="not valid UTF-8"):
        read_wordpiece(tmp_path)
