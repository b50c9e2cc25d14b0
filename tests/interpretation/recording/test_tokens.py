"""Names of tokens."""

import pytest

from saccade.interpretation.recording.tokens import token_axis

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")


def byte_level():
    """Bytes, merged where a text is in English."""
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<end>"])
    made.train_from_iterator(["the two fast cats slept"] * 3, trainer)
    made.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")


def words(axis):
    return ["".join(axis.pieces[place] for place in word) for word in axis.words]


def test_letters_and_spaces_of_byte_level_tokens():
    tokenizer = byte_level()
    ids = tokenizer("two  cats;\n\u0395\u03bb\u03bb \u65e5\U0001f600<end>")["input_ids"]
    axis = token_axis(ids, tokenizer)
    assert words(axis) == ["two", "\u2581cats", ";", "\u0395\u03bb\u03bb", "\u65e5", "\U0001f600"]
    assert [axis.pieces[place] for place in axis.special] == ["<end>"]
    place = axis.pieces.index("\u65e5")
    assert axis.pieces[place + 1 : place + 3] == ["", ""]  # the rest of its three bytes
    assert " " in axis.pieces  # a space of its own is no word
    assert not any("\u0120" in piece for piece in axis.pieces)


def test_a_letter_that_is_cut_off():
    tokenizer = byte_level()
    ids = tokenizer("a\u65e5")["input_ids"]
    assert token_axis(ids[:-1], tokenizer).pieces == ["a", "\\xe6\\x97", ""]
    assert token_axis([*ids[:-1], None], tokenizer).pieces == ["a", "\\xe6\\x97", "", "\u2026"]


def test_single_bytes_of_sentencepiece():
    vocabulary = {name: number for number, name in enumerate(["<unk>", "\u2581the", "<0xC3>", "<0xA9>", "\u2581"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")
    axis = token_axis([1, 2, 3, 4], tokenizer)
    assert axis.pieces == ["\u2581the", "\u00e9", "", " "]
    assert words(axis) == ["\u2581the\u00e9"]


def test_added_tokens_stand_for_themselves():
    tokenizer = byte_level()
    tokenizer.add_tokens(["\u00e9t\u00e9"])
    axis = token_axis(tokenizer("two \u00e9t\u00e9 cats")["input_ids"], tokenizer)
    assert "".join(axis.pieces) == "two \u00e9t\u00e9\u2581cats"
    assert "\u00e9t\u00e9" in axis.pieces


def test_a_language_with_the_letter_of_gpt2s_space():
    names = ["<unk>", "\u0120", "\u2581un", "\u2581\u00e9t\u00e9", "na\u00efve", "\u4e2d"]
    vocabulary = {name: number for number, name in enumerate(names)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")
    assert token_axis([2, 3, 4, 5, 1], tokenizer).pieces == [*names[2:], "\u0120"]
