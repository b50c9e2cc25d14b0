"""Long short-term memory-networks: cells that attend to all their earlier states."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade import masks
from saccade.attention import Attention, check_growing, check_one_by_one
from saccade.checks import check_count
from saccade.distributions import Categorical, Distribution
from saccade.kernels.lstmn import TapeReads, lstmn_sequence
from saccade.kernels.modes import exporting, plain_only, recording
from saccade.kernels.steps import outputs_of_steps
from saccade.layers.cell import glorot_by_gate
from saccade.layers.choices import make_score, make_selection
from saccade.layers.lstm import LSTMCell, lstm_step
from saccade.layers.tapes import CarriedTapes, LSTMNState, TapeRead, Tapes, as_read, read_of, read_tapes
from saccade.memory import Memory
from saccade.reading import Reading, State
from saccade.scores import Score
from saccade.selections import Selection


class LSTMNLayer(nn.Module):
    r"""An LSTM whose state is what attention reads from the tapes of all earlier states.

    .. math:: [\tilde h_t; \tilde c_t] = \sum_{i < t} a_{ti} [h_i; c_i], \quad
        a_t = \mathrm{select}(\mathrm{score}([x_t; \tilde h_{t-1}], h_{1:t-1})), \quad
        h_t, c_t = \mathrm{LSTM}(x_t, \tilde h_t, \tilde c_t)

    The first step reads zeros. The additive score is the paper's :math:`v^\top \tanh(W_h h_i + W_x x_t + W_{\tilde h}
    \tilde h_{t-1})`. With `fusion`, the cell also attends to the tapes g, m of a source, with the query
    :math:`[x_t; \tilde g_{t-1}]`, and a gate lets in what it reads (deep fusion):

    .. math:: r_t = \sigma(W_r [\tilde g_t; x_t] + b_r), \qquad
        c_t = r_t \odot \tilde m_t + f_t \odot \tilde c_t + i_t \odot \tanh(\hat c_t)

    Shapes:
        inputs (batch, length, input_dim), mask bool (batch, length), real steps first, and `source`, the tapes of
        another layer of the same size, with `fusion` -> `Tapes`. Padding affects no real step.

    Reference:
        Cheng et al. (2016), arXiv:1601.06733, sections 3.1 and 3.2.

    Args:
        score, selection: of the attention, each a short name or an instance. Queries are inputs and states together
            (input_dim + hidden_dim), keys are states (hidden_dim).
        window: how many of the latest states a step may read; all by default.
        fusion: whether it reads a source.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        hidden_dim: int,
        score: str | Score | partial[Score] = "additive",
        selection: str | Selection | partial[Selection] = "softmax",
        window: int | None = None,
        fusion: bool = False,
    ) -> None:
        super().__init__()
        check_count("input_dim", input_dim)
        self.cell = LSTMCell(hidden_dim=hidden_dim)
        sizes = {"query_dim": input_dim + hidden_dim, "key_dim": hidden_dim, "hidden_dim": hidden_dim}
        self.attention = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
        check_growing(self.attention)
        self.input_proj = nn.Linear(input_dim, 4 * hidden_dim)
        glorot_by_gate(self.input_proj, hidden_dim)
        self.source_attention: Attention | None = None
        if fusion:
            inter = Attention(score=make_score(score, **sizes), selection=make_selection(selection, **sizes))
            check_one_by_one(inter)
            self.source_attention = inter
            self.source_gate = nn.Linear(hidden_dim, hidden_dim, bias=False)
            self.source_input = nn.Linear(input_dim, hidden_dim)
            for gate in (self.source_gate, self.source_input):
                glorot_by_gate(gate, hidden_dim)
        if window is not None:
            check_count("window", window)
        self.window = window
        self.hidden_dim = hidden_dim

    def begin(
        self, batch: int, *, like: Tensor, room: int = 0, source: Tapes | None = None, past: CarriedTapes | None = None
    ) -> LSTMNState:
        """The state before the first step.

        Args:
            like: a tensor of the type and on the device of the inputs.
            room: how many steps there will be, if that is known.
            source: what is read, with `fusion`.
            past: of the same text, if this is not its beginning.
        """
        if (source is None) != (self.source_attention is None):
            wanted = "no source: build it with fusion=True" if source is not None else "a source: pass its tapes"
            raise ValueError(f"This LSTMNLayer reads {wanted}.")
        zeros = like.new_zeros(batch, self.hidden_dim)
        none = TapeRead(zeros, zeros, State())
        values = like.new_zeros(batch, 0, 2 * self.hidden_dim) if past is None else past.tapes
        keys, read = values[..., : self.hidden_dim], none if past is None else as_read(past.read)
        # A query is at the position of the latest state.
        mask = None if self.window is None else masks.window(self.window - 1, 0)
        tapes = self.attention.prepare(keys, values, mask=mask).reserve(room)
        if source is None or self.source_attention is None:
            return LSTMNState(zeros, tapes, read)
        values = torch.cat([source.hidden, source.cells], dim=-1)
        memory = self.source_attention.prepare(source.hidden, values, mask=source.mask.unsqueeze(1))
        return LSTMNState(zeros, tapes, read, memory, none)

    def step(self, inputs: Tensor, state: LSTMNState) -> LSTMNState:
        """The state after one more step with inputs (batch, input_dim)."""
        return self._advance(inputs, self.input_proj(inputs), state)

    def forward(self, inputs: Tensor, mask: Tensor, source: Tapes | None = None) -> Tapes:
        values = None
        if source is None:
            values, _ = self._all_at_once(inputs) or (None, None)
        if values is None:
            values = self._exported(inputs, source) if exporting() else self._step_by_step(inputs, source)[0]
        hidden, cells = values.chunk(2, -1)
        return Tapes(hidden, cells, mask)

    def resume(self, inputs: Tensor, past: CarriedTapes | None = None) -> tuple[Tensor, CarriedTapes]:
        """h after each step of the next piece of a text, and what the piece after it continues from.

        No gradient flows into the past. Of the past and the piece together, the last `window` states are kept.
        """
        if self.window is None:
            raise ValueError("An LSTMNLayer without a window would keep the whole text: build it with window=100.")
        if self.attention.selection.stateful:
            kind = type(self.attention.selection).__name__
            raise ValueError(f"{kind} depends on earlier steps, which are not carried: choose softmax or sparsemax.")
        values, read = self._all_at_once(inputs, past) or self._step_by_step(inputs, None, past)
        tapes = values if past is None else torch.cat([past.tapes, values], dim=1)
        return values[..., : self.hidden_dim], CarriedTapes(tapes[:, -self.window :].detach(), read.detach())

    def _step_by_step(
        self, inputs: Tensor, source: Tapes | None, past: CarriedTapes | None = None
    ) -> tuple[Tensor, Tensor]:
        """[h; c] after each step, and what the last one read."""
        known = 0 if past is None else past.tapes.shape[1]
        state = self.begin(inputs.shape[0], like=inputs, room=known + inputs.shape[1], source=source, past=past)
        for each, projected in zip(inputs.unbind(1), self.input_proj(inputs).unbind(1), strict=True):
            state = self._advance(each, projected, state)
        return state.tapes.values[:, known:], state.read.hidden

    def _exported(self, inputs: Tensor, source: Tapes | None) -> Tensor:
        """The same as one loop of an exported graph: tapes have their full length, and unwritten parts are masked."""
        batch, length, size = inputs.shape[0], inputs.shape[1], self.hidden_dim
        begun = self.begin(batch, like=inputs, source=source).source
        parts = None if begun is None else (begun.prepared, begun.values, begun.mask)
        places = torch.arange(length, device=inputs.device)

        def step(row: tuple[Tensor, ...], state: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            each, projected, place = row
            values, before, source_before = state
            seen = places < place
            if self.window is not None:
                seen = seen & (places >= place - self.window)
            tapes = self.attention.prepare(values[..., :size], values, mask=seen.unsqueeze(0))
            memory = None
            if self.source_attention is not None and parts is not None:
                memory = Memory(*parts, owner=self.source_attention, own_values=True)
            known = LSTMNState(before, tapes, as_read(before), memory, as_read(source_before))
            hidden, cell, reading, of_source = self._next(each, projected, known)
            new = torch.cat([hidden, cell], dim=-1)
            looked = [reading.weights] if of_source is None else [reading.weights, of_source.weights]
            reads = [read_of(read).hidden for read in (reading, of_source or reading)]
            after = torch.where((places == place).unsqueeze(-1), new.unsqueeze(1), values)
            return (after, *reads), (new, *(weights.squeeze(1) for weights in looked))

        zeros = inputs.new_zeros(batch, size)
        rows = (inputs.transpose(0, 1), self.input_proj(inputs).transpose(0, 1), places)
        start = (inputs.new_zeros(batch, length, 2 * size), zeros, zeros)
        found, *looked = (each.transpose(0, 1) for each in outputs_of_steps(step, start, rows))
        attentions = [each for each in (self.attention, self.source_attention) if each is not None]
        for attention, weights in zip(attentions, looked, strict=True):
            attention.note(Reading(found, Categorical(weights)))
        return found

    def _all_at_once(self, inputs: Tensor, past: CarriedTapes | None = None) -> tuple[Tensor, Tensor] | None:
        """The same as `_step_by_step` by one kernel, if this is the paper's attention."""
        attention = self.attention
        layer = attention.score.hidden_layer()
        if layer is None or not attention.selection.plain_softmax:
            return None
        dropped = attention.dropout and self.training
        if self.source_attention is not None or dropped or plain_only() or recording() or not inputs.shape[1]:
            return None
        of_inputs, of_read = layer.query_weight.split([self.input_proj.in_features, self.hidden_dim], dim=1)
        bias = F.pad(self.cell.bias, (self.hidden_dim, 2 * self.hidden_dim))  # the forget gate is the second of four
        values, looked = lstmn_sequence(
            F.linear(inputs, of_inputs).transpose(0, 1),
            (self.input_proj(inputs) + bias).transpose(0, 1),
            of_read,
            layer.key_weight,
            layer.output,
            self.cell.weight,
            self.window,
            past,
        )
        if not attention.note(Reading(values, deferred=_Weights(looked))):
            return None
        return values, looked.last

    def _advance(self, inputs: Tensor, projected: Tensor, state: LSTMNState) -> LSTMNState:
        hidden, cell, reading, of_source = self._next(inputs, projected, state)
        tapes = state.tapes.append(hidden.unsqueeze(1), torch.cat([hidden, cell], dim=-1).unsqueeze(1))
        source_read = None if of_source is None else read_of(of_source)
        return LSTMNState(hidden, tapes, read_of(reading), state.source, source_read)

    def _next(
        self, inputs: Tensor, projected: Tensor, state: LSTMNState
    ) -> tuple[Tensor, Tensor, Reading, Reading | None]:
        """h and c after one more step, and what it read from its own tapes and from those of the source."""
        reading, of_source, added = read_tapes(self.attention, inputs, state.read, state.tapes), None, None
        if self.source_attention is not None:
            assert state.source is not None
            assert state.source_read is not None
            of_source = read_tapes(self.source_attention, inputs, state.source_read, state.source)
            source_read = read_of(of_source)
            gate = self.source_input(inputs) + self.source_gate(source_read.hidden)
            added = gate.sigmoid() * source_read.cell
        read = read_of(reading)
        hidden, cell = lstm_step(projected, read.hidden, read.cell, self.cell.weight, self.cell.bias, added)
        return hidden, cell, reading, of_source


class _Weights(NamedTuple):
    reads: TapeReads

    def compute(self) -> Distribution:
        return Categorical(self.reads.weights())
