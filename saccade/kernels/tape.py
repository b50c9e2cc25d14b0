"""Rows that are written one after another into memory allocated ahead, instead of being concatenated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from saccade.kernels.modes import plain_only, recording


class Tape(NamedTuple):
    """Tensors (*batch, length, dim) with room for more rows.

    A tape is a value: extending it leaves it as it was. The rows are shared with the tape it becomes, unless another
    tape has been made of it before: then they are copied.

    Args:
        buffers: (*batch, room, dim); what lies beyond the length means nothing.
        length: how many rows are written.
        written: how many rows any tape has written into these buffers, in a list that all of them share.
    """

    buffers: tuple[Tensor, ...]
    length: int
    written: list[int]


def reserve(tensors: Sequence[Tensor], room: int) -> Tape | None:
    """A tape that begins with these tensors (*batch, length, dim), and has room for `room` rows in all.

    None where PyTorch traces or transforms operations: memory cannot be shared there.
    """
    if plain_only() or recording():
        return None
    length = tensors[0].shape[-2]
    empty = Tape(tuple(tensor[..., :0, :] for tensor in tensors), 0, [0])
    return _extend(empty, tensors, max(room, length))[0]


def extend_reference(tensors: Sequence[Tensor], rows: Sequence[Tensor]) -> list[Tensor]:
    """What `extend` returns as tensors: those of the tape, each followed by its rows (*batch, new, dim)."""
    return [torch.cat(pair, dim=-2) for pair in zip(tensors, rows, strict=True)]


def extend(tape: Tape, rows: Sequence[Tensor]) -> tuple[Tape, list[Tensor]] | None:
    """The tape with more rows, and its tensors (*batch, length + new, dim), without copying what is there.

    None for rows of other sizes or types, and where PyTorch traces or transforms operations.

    In the backward pass the gradient of the whole tape goes from the last row to the first in one tensor, to which each
    step adds the gradient of what it read. Concatenating would make a tensor of all rows for each step instead.
    """
    fits = all(
        row.dtype == buffer.dtype and row.device == buffer.device and _sizes(row) == _sizes(buffer)
        for row, buffer in zip(rows, tape.buffers, strict=True)
    )
    if not fits or plain_only() or recording():
        return None
    room, end = tape.buffers[0].shape[-2], tape.length + rows[0].shape[-2]
    return _extend(tape, rows, room if end <= room else max(2 * room, end))


def _extend(tape: Tape, rows: Sequence[Tensor], room: int) -> tuple[Tape, list[Tensor]]:
    end = tape.length + rows[0].shape[-2]
    copied = room != tape.buffers[0].shape[-2] or tape.written[0] != tape.length
    write: Callable[..., tuple[Tensor, ...]] = _Extend.apply
    made = write(tape.length, room, copied, *tape.buffers, *rows)
    written = [0] if copied else tape.written
    written[0] = end
    count = len(tape.buffers)
    return Tape(made[:count], end, written), list(made[count:])


def _sizes(tensor: Tensor) -> tuple[int, ...]:
    return (*tensor.shape[:-2], tensor.shape[-1])


class _Extend(torch.autograd.Function):
    """Buffers and rows -> the same buffers with the rows in them, and their first rows as tensors of their own.

    What is returned shares its memory with the buffers but is `.data` of them: autograd does not see that rows are
    written beyond the tensors of earlier steps, which never change.
    """

    @staticmethod
    def forward(ctx: Any, length: int, room: int, copied: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        count = len(tensors) // 2
        buffers, rows = tensors[:count], tensors[count:]
        end = length + rows[0].shape[-2]
        ctx.length, ctx.end, ctx.room, ctx.old_room = length, end, room, buffers[0].shape[-2]
        ctx.set_materialize_grads(False)
        made = []
        for buffer, row in zip(buffers, rows, strict=True):
            whole = buffer.data
            if copied:
                whole = row.new_empty(*row.shape[:-2], room, row.shape[-1])
                whole[..., :length, :] = buffer.data[..., :length, :]
            whole[..., length:end, :] = row
            made.append(whole)
        return *made, *(whole[..., :end, :].data for whole in made)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        count = len(grads) // 2
        of_buffers: list[Tensor | None] = []
        of_rows: list[Tensor | None] = []
        for later, read in zip(grads[:count], grads[count:], strict=True):
            whole = later  # made by the next step for this one alone, so that it can be added to in place
            if read is not None:
                if whole is None:
                    whole = read.new_zeros(*read.shape[:-2], ctx.room, read.shape[-1])
                whole[..., : ctx.end, :] += read
            of_buffers.append(whole if whole is None else whole[..., : ctx.old_room, :])
            of_rows.append(whole if whole is None else whole[..., ctx.length : ctx.end, :])
        return None, None, None, *of_buffers, *of_rows
