"""`saccade embed` writes vectors that a training starts with."""

import random

import pytest

from saccade.data.vectors import read_vectors

FAMILIES = [["river", "lake", "sea"], ["king", "queen", "duke"]]


@pytest.fixture
def corpus(tmp_path):
    draw = random.Random(1)
    lines = []
    for _ in range(400):
        words = draw.choices([*draw.choice(FAMILIES), "the"], k=draw.randint(4, 9))
        lines.append(" ".join(words).capitalize() + "!")
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "corpus.csv").write_text("id,body\n" + "".join(f"{n},{line}\n" for n, line in enumerate(lines)))
    return tmp_path


def test_words_of_a_family_are_neighbours(corpus, call):
    flags = ["--dim", "13", "--subsample", "0", "--epochs", "8", "--lowercase", "--neighbours", "river,none"]
    code, out, err = call("embed", str(corpus / "corpus.txt"), "--output", str(corpus / "v.txt"), *flags)
    assert code == 0, err
    assert "v.txt: 8 words in" in out
    near = next(line for line in out.splitlines() if line.startswith("river: "))
    assert set(near.removeprefix("river: ").split(", ")[:2]) == {"lake", "sea"}
    assert "none: has no vector" in out
    table = ["--data.text", "body", "--output", str(corpus / "v.bin")]
    assert call("embed", str(corpus / "corpus.csv"), *table, *flags)[0] == 0
    text, binary = (read_vectors(corpus / name) for name in ("v.txt", "v.bin"))
    assert text.words == binary.words
    assert (text.values == binary.values).all()
    assert text.values.shape == (8, 13)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--dim", "0"], "--dim must be 1 or more"),
        (["--window", "0"], "window must be 1 or more"),
        (["--min-count", "100000"], "two words that occur 100000 times or more"),
    ],
)
def test_wrong_options_exit_with_2(corpus, call, flags, message):
    code, out, err = call("embed", str(corpus / "corpus.txt"), "--output", str(corpus / "v.txt"), *flags)
    assert (code, out) == (2, "")
    assert message in err
