"""The lexicon of a generation task, for models that look up words."""

from __future__ import annotations

import torch
from torch import nn

from saccade.data.lexicons import Lexicon, lexicon_table
from saccade.data.tokenisers import Tokeniser
from saccade.decoders.heads import LexiconHead
from saccade.tasks.generation.writer import writer


def check_lexicon(model: nn.Module, lexicon: str | None) -> None:
    """Raises `ValueError` if a model looks up words but there is no lexicon, or the other way round."""
    looks_up = isinstance(getattr(model, "head", None), LexiconHead)
    if looks_up and lexicon is None:
        raise ValueError("the model's head looks up words: set task.lexicon to a lexicon; see saccade lexicon.")
    if lexicon is not None and not looks_up:
        raise ValueError("task.lexicon is for models with the head lexicon: set model.head to lexicon.")


def fill_lexicon(model: nn.Module, name: str, lexicon: Lexicon, source: Tokeniser, target: Tokeniser) -> str:
    """Gives a model the translations of its source tokens, and says how many there are.

    Args:
        model: one that looks up words.
        name: the file of the lexicon.
        lexicon: its content.
        source, target: tokenisers that know their vocabularies.
    """
    head = writer(model).head
    assert isinstance(head, LexiconHead)
    table = lexicon_table(lexicon, source, target, head.look_up.entries)
    if not table.known:
        raise ValueError(
            f"{name} translates none of the {source.size:,} source tokens. Each of its lines must be a source word, "
            "a target word and a probability, as `saccade lexicon` writes them."
        )
    head.look_up.fill(torch.from_numpy(table.words), torch.from_numpy(table.probabilities))
    return (
        f"{name} translates {table.known:,} of the {source.size:,} source tokens; of its {len(lexicon):,} words, "
        f"{len(lexicon) - table.known:,} are not tokens, or have no translation that is."
    )
