"""Files of word vectors: what is written is read, and what is wrong with a file is named."""

import gzip

import numpy as np
import pytest

from saccade.data.vectors import formats, read_vectors, write_vectors

WORDS = ["river", "Straße", "河", "x" * 50, "</s>"]
VALUES = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)


def glove(path, words=WORDS, values=VALUES):
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, values, strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["text", "binary", "glove"])
@pytest.mark.parametrize("zipped", [False, True])
def test_every_format_is_recognised(tmp_path, kind, zipped):
    path = tmp_path / "vectors"
    if kind == "glove":
        glove(path)
    else:
        write_vectors(path, WORDS, VALUES, binary=kind == "binary")
    if zipped:
        packed = tmp_path / "vectors.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    every = read_vectors(path)
    assert every.words == WORDS
    assert np.array_equal(every.values, VALUES)  # to the last bit, as text too
    some = read_vectors(path, {"Straße", "river", "unknown"}, dim=7)
    assert some.words == ["river", "Straße"]
    assert np.array_equal(some.values, VALUES[:2])


def test_binary_files_without_newlines_and_of_many_words(tmp_path):
    words = [f"word{n}" for n in range(7001)]
    values = np.arange(7001 * 53, dtype=np.float32).reshape(7001, 53)  # more than is read at a time
    write_vectors(tmp_path / "a", words, values, binary=True)
    body = (tmp_path / "a").read_bytes().replace(b"\nword", b"word")
    (tmp_path / "b").write_bytes(b"7001 53\n" + body.removeprefix(b"7001 53"))
    for name in "ab":
        found = read_vectors(tmp_path / name, set(words[::97]))
        assert found.words == words[::97]
        assert np.array_equal(found.values, values[::97])


def test_words_with_spaces_and_words_that_occur_twice(tmp_path):
    path = glove(tmp_path / "glove.txt", ["the", ". . .", ".", "."], VALUES[:4])
    found = read_vectors(path, {"."})
    assert np.array_equal(found.values, VALUES[2:3])
    assert read_vectors(path).words == ["the", ". . .", "."]


@pytest.mark.parametrize("zipped", [False, True])
def test_a_byte_order_mark_is_not_part_of_a_file(tmp_path, zipped):
    plain = tmp_path / "plain"
    for write in (glove, lambda path: write_vectors(path, WORDS, VALUES)):
        write(plain)
        content = b"\xef\xbb\xbf" + plain.read_bytes()
        path = damaged(tmp_path / ("marked.gz" if zipped else "marked"), gzip.compress(content) if zipped else content)
        found = read_vectors(path, dim=7)
        assert found.words == WORDS
        assert np.array_equal(found.values, VALUES)


def damaged(path, content):
    path.write_bytes(content)
    return path


NUMBERS = " ".join(["0.5"] * 7).encode()
HEAD = b"2 7\n"
BINARY = b"river " + VALUES[0].tobytes() + b"\n" + b"sea " + VALUES[1].tobytes() + b"\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n", "line 1: .* is neither a word and its numbers"),
        (b"river one two\n", "line 1: .* is neither a word and its numbers"),
        (b"a,b,c\n1,2,3\n", "line 1: .* is neither a word and its numbers"),
        (
            b"99999999999999 7\nriver " + NUMBERS + b"\n",
            r"promises 99,999,999,999,999 words .* but has 1: is it truncated",
        ),
        (b"99999999999 7\n" + BINARY, "promises 99,999,999,999 words .* but ends after 2: is it truncated"),
        (b"2 99999999999\nriver 1 2 3\n", "99,999,999,999 dimensions are not from 1 to 16,384"),
        (b"2 0\nriver\n", "0 dimensions are not from 1"),
        (b"1 7\nriver " + NUMBERS + b"\nsea " + NUMBERS + b"\n", "promises 1 words .* but has 2"),
        (b"1 7\n" + BINARY, "promises 1 words .* but has more"),
        (HEAD + BINARY[:-9], "promises 2 words .* but ends after 1"),
        (HEAD + b"x" * 5000 + BINARY, "word 1: the word is longer than 4,096 bytes"),
        (HEAD + b"river " + NUMBERS + b"\nsea 0.5 0.5\n", "line 3: 2 numbers instead of 7"),
        (
            HEAD + b"river " + NUMBERS + b"\nsea " + NUMBERS[:-3] + b"nan\n",
            "line 3: the vector of 'sea' has a number that",
        ),
        (
            HEAD + b"river " + NUMBERS + b"\nsea " + NUMBERS[:-3] + b"1e99\n",
            "line 3: the vector of 'sea' has a number that",
        ),
        (
            HEAD + b"river " + NUMBERS + b"\nsea " + NUMBERS[:-3] + b"x.y\n",
            "line 3: the vector of 'sea' is not 7 numbers",
        ),
        (HEAD + b"river " + np.full(7, np.inf, "<f4").tobytes() + BINARY[35:], "word 1: .* 'river' has a number that"),
        (HEAD + b"river " + NUMBERS + b"\ncaf\xe9 " + NUMBERS + b"\n", r"line 3: the word b'caf\\xe9' is not UTF-8"),
        (HEAD + b"caf\xe9 " + BINARY[6:], r"word 1: the word b'caf\\xe9' is not UTF-8"),
        (gzip.compress(HEAD + BINARY, mtime=0)[:40], "is not a complete gzip file"),
    ],
)
@pytest.mark.parametrize("wanted", [None, {"river", "sea"}])
def test_what_is_wrong_with_a_file_is_named(tmp_path, content, message, wanted):
    path = damaged(tmp_path / ("v.gz" if content[:2] == b"\x1f\x8b" else "v"), content)
    with pytest.raises(ValueError, match=message):
        read_vectors(path, wanted)


def test_words_that_are_not_utf8_may_be_left_out(tmp_path):
    path = damaged(tmp_path / "v", HEAD + b"caf\xe9 " + BINARY[6:])
    for wanted in (None, {"sea"}):
        assert read_vectors(path, wanted, bad_words="skip").words == ["sea"]


def test_a_line_without_an_end_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "LONGEST_WORD", 50)
    with pytest.raises(ValueError, match="line 2: the line is longer than 386 bytes"):
        read_vectors(damaged(tmp_path / "v", b"river " + NUMBERS + b"\n" + b"x" * 10_000))


def test_vectors_of_another_length_are_refused_before_they_are_read(tmp_path):
    with pytest.raises(ValueError, match=r"vectors of 7 dimensions, but the model's embeddings have 5: set the"):
        read_vectors(glove(tmp_path / "v"), {"river"}, dim=5)


@pytest.mark.parametrize("word", ["", "two words", "a\nb"])
def test_words_that_a_file_cannot_hold(tmp_path, word):
    with pytest.raises(ValueError, match="is empty or has a space"):
        write_vectors(tmp_path / "v", [word], VALUES[:1])
