"""What the rows and columns of an attention map stand for: pieces of text, patches, frames of sound, nodes, visits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saccade.interpretation.explorer.media import PNG
from saccade.interpretation.explorer.sound import SoundAxis
from saccade.interpretation.explorer.visits import VisitAxis


@dataclass(frozen=True, kw_only=True)
class TextAxis:
    """The pieces of a text, in order.

    Args:
        pieces: the tokens as the model reads them, shown verbatim.
        words: the indices of each word's pieces, so that subwords can be merged. White space outside every word belongs
            to the word after it; any other piece outside every word stands alone.
        special: the indices of tokens that are not part of the text, such as `[CLS]` and `</s>`.
        sentences: the indices of each sentence's pieces.
        gold: the indices of the pieces that people marked as the reason for an answer, if any.
        origins: for a text that a model wrote, where each piece came from, such as `copied from word 7 (Paris)`; "" for
            a generated piece. None if the model only generates words.
    """

    pieces: Sequence[str]
    words: Sequence[Sequence[int]] | None = None
    special: Sequence[int] = ()
    sentences: Sequence[Sequence[int]] | None = None
    gold: Sequence[int] | None = None
    origins: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.origins is not None and len(self.origins) != len(self.pieces):
            raise ValueError(
                f"There are {len(self.pieces)} pieces but {len(self.origins)} origins: give one per piece."
            )
        if isinstance(self.pieces, str) or not all(isinstance(piece, str) for piece in self.pieces):
            raise TypeError(f"pieces must be a list of strings, got {self.pieces!r:.80}.")
        _check_places([self.special], len(self.pieces), "special", empty=True)
        _check_places([self.gold or ()], len(self.pieces), "gold", empty=True)
        for name in ("words", "sentences"):
            groups = getattr(self, name)
            if groups is not None:
                _check_places(groups, len(self.pieces), name)

    @classmethod
    def from_encoding(cls, encoding: Any, row: int = 0) -> "TextAxis":
        """The pieces, words and special tokens of one row of a Hugging Face fast tokeniser's output."""
        if not getattr(encoding, "is_fast", False):
            raise TypeError(
                "from_encoding takes the output of a Hugging Face fast tokeniser, got "
                f"{type(encoding).__name__}; for anything else, use TextAxis(pieces=...)."
            )
        words: dict[tuple[int | None, int], list[int]] = {}
        special = []
        for place, (text, word) in enumerate(zip(encoding.sequence_ids(row), encoding.word_ids(row), strict=True)):
            if word is None:
                special.append(place)
            else:
                words.setdefault((text, word), []).append(place)
        return cls(pieces=encoding.tokens(row), words=list(words.values()), special=special)

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def names(self) -> list[str]:
        """The name of each row or column."""
        return list(self.pieces)

    @property
    def groups(self) -> list[list[int]]:
        """The pieces of each word, in order; pieces outside every word stand alone, except for white space."""
        if self.words is None:
            return [[place] for place in range(len(self))]
        taken = {place for word in self.words for place in word}
        starts: dict[int, list[int]] = {min(word): list(word) for word in self.words}
        found: list[list[int]] = []
        spaces: list[int] = []
        for place in range(len(self)):
            blank = place not in taken and place not in self.special and self.pieces[place].isspace()
            if blank:
                spaces.append(place)
            elif place in starts or place not in taken:
                found.append([*spaces, *starts.get(place, [place])])
                spaces = []
        if spaces and found:  # trailing white space has no word after it
            found[-1] += spaces
        elif spaces:
            found = [[place] for place in spaces]
        return found


@dataclass(frozen=True, kw_only=True)
class ImageAxis:
    """The patches of a picture, line by line from the upper left.

    Args:
        png: the contents of a PNG file.
        grid: how many lines and columns of patches there are.
        leading: the tokens before the patches, such as `[CLS]` and registers.
    """

    png: bytes
    grid: tuple[int, int]
    leading: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.png.startswith(PNG):
            raise ValueError(f"png must be the contents of a PNG file, got bytes that start with {self.png[:8]!r}.")
        if min(self.grid) < 1:
            raise ValueError(f"grid must be (lines, columns) of at least 1, got {self.grid}.")

    def __len__(self) -> int:
        return len(self.leading) + self.grid[0] * self.grid[1]

    @property
    def names(self) -> list[str]:
        """The leading tokens, then `line,column` of each patch, counted from 1."""
        lines, columns = self.grid
        return [*self.leading, *(f"{i + 1},{j + 1}" for i in range(lines) for j in range(columns))]


@dataclass(frozen=True, kw_only=True)
class NodeAxis:
    """Nodes of a graph: one node with the nodes it attends to, or a whole neighbourhood.

    A weight of 0 between two nodes means that there is no edge, unless the map has a single query: then every key is a
    neighbour.

    Args:
        names: one per node, all different: a name identifies its node on both axes of a map.
        labels: the class of each node; nodes of one class share a colour. "" stands for an unknown class.
        centre: the index of the node in the centre of the drawing.
    """

    names: list[str]
    labels: Sequence[str] | None = None
    centre: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"names must be a list of strings, got {self.names!r:.80}.")
        if not self.names:
            raise ValueError("names is empty: a node axis needs at least one node.")
        seen: dict[str, int] = {}
        for place, name in enumerate(self.names):
            if name in seen:
                raise ValueError(f"names must all differ: nodes {seen[name]} and {place} are both called {name!r:.80}.")
            seen[name] = place
        if self.labels is not None:
            if isinstance(self.labels, str) or not all(isinstance(label, str) for label in self.labels):
                raise TypeError(f"labels must be a list of strings, got {self.labels!r:.80}.")
            if len(self.labels) != len(self.names):
                raise ValueError(f"There are {len(self.names)} nodes but {len(self.labels)} labels: give one per node.")
        if not 0 <= self.centre < len(self.names):
            raise ValueError(f"centre is {self.centre}, but there are {len(self.names)} nodes (counted from 0).")

    def __len__(self) -> int:
        return len(self.names)


Axis = TextAxis | ImageAxis | SoundAxis | NodeAxis | VisitAxis


def _check_places(groups: Sequence[Sequence[int]], length: int, name: str, *, empty: bool = False) -> None:
    seen: set[int] = set()
    for group in groups:
        if not group and not empty:
            raise ValueError(f"{name} contains an empty group: {list(map(list, groups))!r:.80}.")
        for place in group:
            if not 0 <= place < length:
                raise ValueError(f"{name} refers to piece {place}, but there are {length} pieces (counted from 0).")
            if place in seen:
                raise ValueError(f"{name} refers to piece {place} twice.")
            seen.add(place)
