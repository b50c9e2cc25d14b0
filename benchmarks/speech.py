"""Features of sounds, and training listen, attend and spell.

librosa computes the same log-mel features from the same samples, one recording after another. It imports soxr, for
resampling, which is not compared: without it, an empty module takes its place.

The peers of training are written in plain PyTorch, since SpeechBrain and ESPnet need torchaudio. One goes step by
step: loops of `nn.LSTMCell` for the listener and the speller, with attention and logits at each step. The other has
`nn.LSTM`, which PyTorch implements in C++, for the listener. All have the paper's shape at a quarter of its size, which
trains on a CPU, and take the same steps of Adam on the same batch. At larger sizes matrix products take most of the
time, and they are the same on all sides.
"""

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import Timing
from saccade.kernels.log_mel import log_mel
from saccade.models import ListenAttendSpell

RATE, MELS, WINDOW, HOP = 16_000, 80, 400, 160
BATCH, FRAMES, LETTERS = 16, 320, 30
FEATURES, VOCAB, EMBEDDING, LISTENER, SPELLER, LAYERS = 40, 31, 64, 64, 128, 2

Side = Callable[[], object]


def cases() -> list[Timing]:
    what = f"training LAS, {BATCH} recordings of {FRAMES} frames"
    return [
        Timing("log-mel, 10 s at 16 kHz, 80 bands", "librosa", partial(_log_mel, 10.0), must=3.0),
        Timing("log-mel, 1 s at 16 kHz, 80 bands", "librosa", partial(_log_mel, 1.0), must=3.0),
        Timing(what, "nn.LSTMCell step by step", partial(_training, stepwise=True), must=2.0),
        Timing(what, "nn.LSTM, and nn.LSTMCell in the speller", partial(_training, stepwise=False)),
    ]


def _log_mel(seconds: float) -> tuple[Side, Side]:
    sys.path.append(str(Path(sys.prefix) / "librosa"))  # where `make` installs it
    sys.modules.setdefault("soxr", ModuleType("soxr"))
    librosa = importlib.import_module("librosa")
    sound = np.random.default_rng(0).standard_normal(int(seconds * RATE)).astype(np.float32) / 8
    tensor = torch.from_numpy(sound)
    settings = {"sr": RATE, "n_fft": 512, "win_length": WINDOW, "hop_length": HOP, "n_mels": MELS, "power": 2.0}

    def peer() -> object:
        return np.log(np.maximum(librosa.feature.melspectrogram(y=sound, **settings), 1e-10))

    return partial(log_mel, tensor, rate=RATE, mels=MELS, window=WINDOW, hop=HOP), peer


class StepByStep(nn.Module):
    """A bidirectional LSTM as two loops."""

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(input_dim, hidden_dim) for _ in range(2))

    def forward(self, inputs: Tensor) -> tuple[Tensor]:
        found = []
        for cell, steps in zip(self.cells, (inputs.unbind(1), inputs.flip(1).unbind(1)), strict=True):
            state, states = None, []
            for step in steps:
                state = cell(step, state)
                states.append(state[0])
            found.append(torch.stack(states, dim=1))
        return (torch.cat([found[0], found[1].flip(1)], dim=-1),)


class Peer(nn.Module):
    """The same network with PyTorch's layers."""

    def __init__(self, *, stepwise: bool) -> None:
        super().__init__()
        sizes = [FEATURES, *[4 * LISTENER] * 3]
        kind = StepByStep if stepwise else partial(nn.LSTM, batch_first=True, bidirectional=True)
        self.layers = nn.ModuleList(kind(size, LISTENER) for size in sizes)
        self.embedding = nn.Embedding(VOCAB, EMBEDDING)
        inputs = [EMBEDDING + 2 * LISTENER, *[SPELLER] * (LAYERS - 1)]
        self.cells = nn.ModuleList(nn.LSTMCell(size, SPELLER) for size in inputs)
        self.query = nn.Sequential(nn.Linear(SPELLER, SPELLER), nn.Tanh(), nn.Linear(SPELLER, SPELLER, bias=False))
        self.key = nn.Sequential(nn.Linear(2 * LISTENER, SPELLER), nn.Tanh(), nn.Linear(SPELLER, SPELLER, bias=False))
        self.hidden = nn.Linear(SPELLER + 2 * LISTENER, SPELLER, bias=False)
        self.output = nn.Linear(SPELLER, VOCAB)

    def forward(self, frames: Tensor, mask: Tensor, tokens: Tensor) -> Tensor:
        states = frames
        for number, layer in enumerate(self.layers):
            if number:
                states = states.reshape(len(states), states.shape[1] // 2, 2 * states.shape[2])
                mask = mask[:, ::2]
            states = layer(states)[0]
        keys = self.key(states)
        context = states.new_zeros(len(states), states.shape[2])
        hidden = [(states.new_zeros(len(states), SPELLER), states.new_zeros(len(states), SPELLER))] * LAYERS
        steps = []
        for token in tokens.unbind(1):
            inputs = torch.cat([self.embedding(token), context], dim=-1)
            for number, cell in enumerate(self.cells):
                hidden[number] = cell(inputs, hidden[number])
                inputs = hidden[number][0]
            scores = (keys @ self.query(inputs).unsqueeze(-1)).squeeze(-1).masked_fill(~mask, -1e9)
            context = (scores.softmax(-1).unsqueeze(1) @ states).squeeze(1)
            steps.append(self.output(torch.tanh(self.hidden(torch.cat([inputs, context], dim=-1)))))
        return torch.stack(steps, dim=1)


def _training(*, stepwise: bool) -> tuple[Side, Side]:
    torch.manual_seed(1)
    frames, target = torch.randn(BATCH, FRAMES, FEATURES), torch.randint(3, VOCAB, (BATCH, LETTERS))
    mask = torch.ones(BATCH, FRAMES, dtype=torch.bool)
    before = F.pad(target, (1, 0), value=1)[:, :-1]
    sizes = {"embedding_dim": EMBEDDING, "listener_dim": LISTENER, "hidden_dim": SPELLER, "num_layers": LAYERS}
    ours = ListenAttendSpell(source_dim=FEATURES, target_vocab=VOCAB, sampling=0.0, **sizes).train()
    peer = Peer(stepwise=stepwise).train()

    def loss_of_ours() -> Tensor:
        decoded = ours(frames, mask, before)
        return ours.head.loss(decoded.features.flatten(0, 1), target.flatten()).total / target.numel()

    def loss_of_peer() -> Tensor:
        return F.cross_entropy(peer(frames, mask, before).flatten(0, 1), target.flatten())

    return _steps(ours, loss_of_ours), _steps(peer, loss_of_peer)


def _steps(model: nn.Module, loss: Callable[[], Tensor]) -> Side:
    """A function that trains for one step."""
    optimiser = torch.optim.Adam(model.parameters())

    def run() -> None:
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()

    return run
