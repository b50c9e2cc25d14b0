"""The maps of one input and the model's output: which row of each call, and what its queries and keys are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from saccade.interpretation.explorer import Axis, ImageAxis, Map, TextAxis, TopWeights
from saccade.interpretation.recording.inputs import Generated, Inputs
from saccade.interpretation.recording.rows import DrawableCall, LeftOutError, Shown, joined_of, map_of, weights_of
from saccade.interpretation.recording.tokens import token_axis

SEEN = ("vision", "visual", "image", "vit")
HEARD = ("audio", "speech")
BEAMS = (
    "call generate(..., return_dict_in_generate=True) and give its whole result, so that every step of a beam search "
    "is taken from the row of its hypothesis."
)

LONG_SOUNDS = " Whisper writes about long recordings in several windows: record one window at a time."


class Subject:
    """One row of a batch: the model's input and output.

    Args:
        inputs: what the model was given.
        generated: what it wrote, if it wrote something.
        tokenizer: names the tokens.
        row: the number of the row: of what was written, otherwise of the inputs.
        calls: by path, the calls of one run of the model.
    """

    def __init__(
        self,
        inputs: Inputs,
        generated: Generated | None,
        tokenizer: Any,
        row: int,
        calls: dict[str, list[DrawableCall]],
    ) -> None:
        self._inputs, self._generated, self._tokenizer = inputs, generated, tokenizer
        self._two_sided = any(each[0].kind == "cross" for each in calls.values())
        self._inputs_count = len(inputs) or self._encoder_rows(calls)
        count = len(generated) if generated is not None else self._inputs_count
        if not -count <= row < count:
            what = "sequences were generated" if generated is not None else "inputs were given"
            raise ValueError(f"row={row}, but {count} {what}.")
        self._row = row % count
        if generated is not None and self._inputs_count and count % self._inputs_count:
            raise ValueError(
                f"generated has {count} sequences and inputs {self._inputs_count} rows: give those of one generate."
            )
        # Every input has equally many sequences, one after another.
        self._source_row = self._row // max(count // max(self._inputs_count, 1), 1)
        self.notes: list[str] = []
        self._fits = False  # whether any module reads these inputs
        self._misfit = ""

    def check_inputs(self) -> None:
        """Raises if no module of an encoder reads as many tokens as were given: they are those of another run."""
        if self._two_sided and self._misfit and not self._fits:
            raise ValueError(f"inputs do not fit the recording: {self._misfit}. Give those of this run.")

    def maps(self, path: str, calls: list[DrawableCall]) -> list[Map]:
        """The maps of one module; `LeftOutError` says why there are none."""
        queries, keys = self._sides(path, calls[0].kind)
        layer = next((int(part) for part in path.split(".") if part.isdecimal()), None)
        if queries == "target" and self._generated is not None:
            joined, tokens = self._written(path, calls)
            rows = self._target(tokens, ahead=keys == "source")
            columns = self._target(tokens) if keys == "target" else self._source(path, joined.shape[2])
            return [map_of(path, layer, joined, rows, columns)]
        found = []
        for call in calls:
            weights = self._one(call)
            columns = self._find(keys, path, weights.shape[2])
            if queries == keys and weights.shape[1] == weights.shape[2]:
                rows = columns
            elif queries == "source" and weights.shape[1] == 1:
                rows = Shown(TextAxis(pieces=["[pooling]"], special=[0]), [0])
            else:
                rows = self._find(queries, path, weights.shape[1])
            found.append(map_of(call.name, layer, weights, rows, columns))
        return found

    def _sides(self, path: str, kind: str | None) -> tuple[str, str]:
        """What the queries and the keys of a module are: the source, or the target, which is what is written."""
        if kind == "cross":
            return "target", "source"
        lower = path.lower()
        if self._two_sided:
            return ("target", "target") if "decoder" in lower else ("source", "source")
        written = self._generated is not None and not _has(lower, SEEN + HEARD)
        return ("target", "target") if written else ("source", "source")

    def _encoder_rows(self, calls: dict[str, list[DrawableCall]]) -> int:
        """How many inputs there were, according to the encoder; 0 if unknown."""
        sides = {path: self._sides(path, each[0].kind) for path, each in calls.items()} if self._two_sided else {}
        return next((calls[path][0].shape[0] for path, each in sides.items() if each == ("source", "source")), 0)

    def _one(self, call: DrawableCall) -> Tensor | TopWeights:
        """(heads, queries, keys) of the row in a call that is not a step."""
        rows, inputs = call.shape[0], self._inputs_count
        if rows == inputs:
            return weights_of(call, self._source_row)
        media = self._inputs.pictures or self._inputs.sounds
        if rows == 1 and media is not None and len(media) == 1:  # one picture for several texts
            return weights_of(call, 0)
        if self._generated is None or rows != len(self._generated):
            raise LeftOutError(f"its batch has {rows} rows, and inputs has {inputs}")
        return weights_of(call, self._row)  # every sequence has its own copy of the input, as in Whisper

    def _written(self, path: str, calls: list[DrawableCall]) -> tuple[Tensor | TopWeights, list[int | None]]:
        """(heads, queries, keys) of a decoder's steps, and the tokens that it read, and the one after them."""
        generated = self._generated
        assert generated is not None
        rows, row = calls[0].shape[0], self._row
        sequences = len(generated)
        if generated.beams is None and rows != sequences:
            raise ValueError(f"{path!r} was called with {rows} rows, but generated has {sequences} sequences: {BEAMS}")
        if not generated.sure and sequences > max(self._inputs_count, 1):
            given = f"{sequences} sequences for {self._inputs_count or 'an unknown number of'} inputs"
            raise ValueError(
                f"generated has {given}, which may be beams or samples: {BEAMS}"
                if self._inputs_count
                else f"generated has {given}: give inputs= too, or {BEAMS}"
            )
        counts = [call.shape[2] for call in calls]
        total = _reached(calls)
        repeated = len(counts) > 1 and counts == list(range(counts[0], counts[0] + len(counts)))  # without a cache
        wrote = generated.steps(row)
        start = self._prompt_length(counts[0])
        # Assisted generation reads tokens that it may drop again: the last call reaches beyond the text.
        spare = counts[-1] - 1 if not repeated and sum(counts) > total else 0
        tokens = self._tokens(path, start, total if wrote is None else start + generated.longest - 1, spare)
        read = self._until_end(tokens, start) if wrote is None else start + wrote - 1
        if repeated:
            last = read - counts[0]
            here = row if generated.beams is None else int(generated.beams[row, last])
            weights = weights_of(calls[last], here)
        elif generated.beams is None:
            weights = joined_of(calls[0], row)
        else:
            weights = joined_of(calls[0], 0, generated.beams[row : row + 1])
        return weights, tokens[: read + 1]

    def _prompt_length(self, first: int) -> int:
        """How many tokens were given: as many as the first call has, unless it has guesses of an assistant too."""
        ids = None if self._two_sided else self._inputs.ids
        return first if ids is None else min(first, ids.shape[1])

    def _tokens(self, path: str, start: int, read: int, spare: int) -> list[int | None]:
        """The tokens that were read and the one after them, prompt and all."""
        assert self._generated is not None
        length = self._generated.ids.shape[1]
        found: list[int | None] = self._generated.ids[self._row].tolist()
        if read + 1 - spare <= length <= read + 1:
            self._check_prompt(found)
            return found
        if read + 1 - spare <= length + start <= read + 1:
            return [*self._prompt(start), *found]
        if length + start == read and self._two_sided:  # Whisper cuts off the prompt and the end
            padding = getattr(self._tokenizer, "pad_token_id", None)
            ended = length > 0 and padding is not None and found[-1] == padding
            return [*self._prompt(start), *found, padding if ended else getattr(self._tokenizer, "eos_token_id", None)]
        raise ValueError(
            f"generated has {length} tokens a row, but the calls of {path!r} fit {read + 1} (a prompt of {start} and "
            f"{read + 1 - start} more), or {read + 1 - start} without the prompt: give what this generate returned."
            + (LONG_SOUNDS if self._inputs.sounds is not None else "")
        )

    def _check_prompt(self, found: list[int | None]) -> None:
        ids = None if self._two_sided else self._inputs.ids
        prompt = [] if ids is None else ids[self._source_row].tolist()
        wrong = next((n for n, each in enumerate(prompt) if n >= len(found) or found[n] != each), None)
        if wrong is not None:
            raise ValueError(
                f"generated does not continue inputs: row {self._row} has {_at(found, wrong)} at position {wrong}, and "
                f"row {self._source_row} of inputs has token {prompt[wrong]}. Give those of one generate."
            )

    def _prompt(self, start: int) -> list[int | None]:
        ids = None if self._two_sided else self._inputs.ids
        if ids is None or ids.shape[1] != start:
            return [None] * start
        return list(ids[self._source_row].tolist())

    def _until_end(self, tokens: list[int | None], start: int) -> int:
        """How many tokens were read until the end of this row: shorter rows are filled with padding."""
        padding = getattr(self._tokenizer, "pad_token_id", None)
        end = len(tokens)
        if padding is not None:
            kept = int(padding == getattr(self._tokenizer, "eos_token_id", None))  # then the first of them is the end
            while end > start + 1 and tokens[end - 1] == padding and (not kept or tokens[end - 2] == padding):
                end -= 1
        return end - 1

    def _target(self, tokens: list[int | None], *, ahead: bool = False) -> Shown:
        """What the decoder read or, one token ahead, what it wrote."""
        kept = list(range(len(tokens) - 1))
        mask = self._inputs.mask
        if mask is not None and not self._two_sided and mask.shape[1] < len(tokens):  # the prompt
            padding = (~mask[self._source_row]).nonzero().flatten().tolist()
            kept = [place for place in kept if place not in set(padding)]
        chosen = tokens[1:] if ahead else tokens[:-1]
        return Shown(token_axis([chosen[place] for place in kept], self._tokenizer), kept)

    def _find(self, side: str, path: str, length: int) -> Shown:
        if side == "source":
            return self._source(path, length)
        target = self._inputs.target
        if target is None or target.shape[1] != length:
            known = "decoder_input_ids are not in inputs" if target is None else f"{target.shape[1]} were given"
            raise LeftOutError(f"the tokens of its {length} queries or keys are not known: {known}")
        return Shown(token_axis(target[self._source_row].tolist(), self._tokenizer), list(range(length)))

    def _source(self, path: str, length: int) -> Shown:
        """What the model was given, if it fits."""
        lower = path.lower()
        row, inputs = self._source_row, self._inputs
        axis: Axis | None = None
        textual = "text" in lower or not _has(lower, SEEN + HEARD)
        if inputs.ids is not None and inputs.ids.shape[1] == length and textual:
            return self._text(length)
        if inputs.sounds is not None and not _has(lower, SEEN):
            axis = inputs.sounds.axis(row, length)
            if inputs.sounds.cut(row, length):
                self._note(f"The model reads {axis.seconds:g} seconds: the rest of the recording is not shown.")
        elif inputs.pictures is not None and "text" not in lower:
            axis = inputs.pictures.axis(row, length)
            if isinstance(axis, ImageAxis) and inputs.pictures.cut(row, axis.grid):
                self._note(
                    f"The picture is shown whole, as if it had been scaled to {axis.grid[0]} x {axis.grid[1]} patches. "
                    "If the model saw a part of it, give the processor's output as inputs."
                )
        if axis is None:
            given = "none are given" if inputs.ids is None else f"{inputs.ids.shape[1]} are given"
            reason = f"it has {length} tokens of the input, but {given}"
            if inputs.ids is not None:
                self._misfit = self._misfit or f"{path}: {reason}"
            raise LeftOutError(reason)
        self._fits = True
        return Shown(axis, list(range(length)))

    def _text(self, length: int) -> Shown:
        self._fits = True
        row, inputs = self._source_row, self._inputs
        assert inputs.ids is not None
        kept = list(range(length)) if inputs.mask is None else inputs.mask[row].nonzero().flatten().tolist()
        ids = inputs.ids[row].tolist()
        axis = token_axis([ids[place] for place in kept], self._tokenizer)
        if inputs.encoding is not None:
            whole = TextAxis.from_encoding(inputs.encoding, row)
            new = {place: number for number, place in enumerate(kept)}
            words = [[new[place] for place in word if place in new] for word in whole.words or ()]
            pieces = axis.pieces if self._tokenizer is not None else [whole.pieces[place] for place in kept]
            special = [new[place] for place in whole.special if place in new]
            words = [word for word in words if any(not pieces[place].isspace() for place in word)]
            axis = TextAxis(pieces=pieces, words=words or None, special=special)
        return Shown(axis, kept)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _at(tokens: Sequence[int | None], place: int) -> str:
    return f"token {tokens[place]}" if place < len(tokens) else "nothing"


def _reached(calls: list[DrawableCall]) -> int:
    """How many positions the queries of all calls reach."""
    end = most = 0
    for call in calls:
        positions = call.query_positions
        end = (end if positions is None else positions.start) + call.shape[2]
        most = max(most, end)
    return most


def _has(path: str, words: Sequence[str]) -> bool:
    return any(word in path for word in words)
