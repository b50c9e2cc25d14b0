"""The words that one source adds to the vocabulary of its target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from saccade.data.special import EOS, UNK
from saccade.data.tokenisers import Tokeniser


class Extension:
    """The vocabulary of a target, extended by the out-of-vocabulary words of one source.

    Their ids follow those of the vocabulary, in the order of the source. Words that a subword vocabulary would split
    are included, so that they are copied whole.

    Args:
        source, target: the tokenisers of both sides.
        text: the source.
    """

    def __init__(self, source: Tokeniser, target: Tokeniser, text: str) -> None:
        self.source, self.target, self.text = source, target, text
        self.extra: list[str] = []
        """The words that the vocabulary lacks."""
        self.said: list[int] = []
        """The word at each token of the source, including its end, as an id of the extended vocabulary."""
        self._ids: dict[str, int] = {}
        said: dict[int, int] = {}
        self._units = source.units(text)
        for unit, places in self._units:
            token = target.id_of(unit)
            if token == UNK:
                token = self._ids.setdefault(unit, target.size + len(self._ids))
            said |= dict.fromkeys(places, token)
        self.extra = list(self._ids)
        self.said = [*(said[place] for place in range(len(said))), EOS]

    def encode(self, text: str) -> list[int]:
        """The ids of a target, without the end."""
        if not self._ids:
            return self.target.encode(text)
        ids = self.target.encode(text)
        found: list[int] = []
        for unit, places in self.target.units(text):
            copied = self._ids.get(unit)
            found += [ids[place] for place in places] if copied is None else [copied]
        return found

    def lost(self, written: Collection[int]) -> list[str]:
        """The unknown words of the source that a target of these ids does not copy."""
        known = self.source.encode(self.text)
        return [
            self.source.join([unit])
            for unit, places in self._units
            if self.said[places[0]] not in written and any(known[place] == UNK for place in places)
        ]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The entry of the extended vocabulary for each id."""
        return self.target.pieces(ids, self.extra)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids up to the end."""
        return self.target.decode(ids, self.extra)

    def words(self, ids: Sequence[int]) -> list[list[int]]:
        """The places of each word's ids."""
        return self.target.group(self.pieces(ids))
