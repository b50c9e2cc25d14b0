"""Language models: training an LSTM and a causal Transformer against plain PyTorch, and an LSTMN's tape."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import lstmn
from benchmarks.harness import Timing
from saccade.models import LSTMLanguageModel, TransformerLanguageModel
from saccade.models.base import LanguageModel

VOCAB, DIM, LAYERS, HEADS = 10_000, 200, 2, 4
STREAMS, PIECE = 20, 35
LONG = 128
"""Tokens of a text for the Transformer."""


class PlainLSTM(nn.Module):
    """An embedding, `nn.LSTM` and a linear layer with the weights of the embedding, as tutorials write it."""

    def __init__(self, ours: LSTMLanguageModel) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, DIM)
        self.lstm = nn.LSTM(DIM, DIM, LAYERS, batch_first=True)
        self.output = nn.Linear(DIM, VOCAB, bias=False)
        with torch.no_grad():
            self.embedding.weight.copy_(ours.embedding.weight)
            self.output.weight = self.embedding.weight
            for number, layer in enumerate(ours._layers()):
                bias = layer.input_proj.bias + F.pad(layer.cell.tensors()[1], (DIM, 2 * DIM))
                for name, tensor in (
                    ("weight_ih", layer.input_proj.weight),
                    ("weight_hh", layer.cell.weight),
                    ("bias_ih", bias),
                    ("bias_hh", torch.zeros_like(bias)),
                ):
                    getattr(self.lstm, f"{name}_l{number}").copy_(tensor)

    def loss(self, tokens: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        outputs, after = self.lstm(self.embedding(tokens[:, :-1]), state)
        logits = self.output(outputs)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        return loss, (after[0].detach(), after[1].detach())


class PlainBlock(nn.Module):
    """A pre-norm block with one product for queries, keys and values, and PyTorch's fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_feed_forward = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.query_key_value, self.attended = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.feed_forward = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, states: Tensor) -> Tensor:
        joined = self.query_key_value(self.before_attention(states)).chunk(3, dim=-1)
        query, key, value = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in joined)
        read = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        states = states + self.attended(read.transpose(1, 2).flatten(-2))
        return states + self.feed_forward(self.before_feed_forward(states))


class PlainTransformer(nn.Module):
    """Blocks between an embedding with learned positions and a linear layer that shares its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCAB, DIM), nn.Embedding(LONG, DIM)
        self.blocks, self.norm = nn.Sequential(*(PlainBlock() for _ in range(LAYERS))), nn.LayerNorm(DIM)
        self.output = nn.Linear(DIM, VOCAB, bias=False)
        self.output.weight = self.embedding.weight

    def loss(self, tokens: Tensor) -> Tensor:
        states = self.embedding(tokens[:, :-1]) + self.positions.weight[: tokens.shape[1] - 1]
        logits = self.output(self.norm(self.blocks(states)))
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def _step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], object]:
    """One update: loss, gradient, clipping, AdamW."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def run() -> object:
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return None

    return run


def _our_loss(model: LanguageModel, tokens: Tensor) -> Callable[[], Tensor]:
    """The mean loss of the next piece of a text, with what is carried."""
    real = torch.ones_like(tokens[:, 1:], dtype=torch.bool)
    carried: dict[str, Tensor] = {}

    def loss() -> Tensor:
        nonlocal carried
        features, carried = model.read(tokens[:, :-1], real, carried)
        return model.head.loss(features[real], tokens[:, 1:][real]).total / real.sum()

    return loss


def build_lstm() -> tuple[Callable[[], object], Callable[[], object]]:
    """A step of training with carried state; the losses of both sides agree first."""
    torch.manual_seed(0)
    ours = LSTMLanguageModel(vocab=VOCAB, dim=DIM, num_layers=LAYERS, dropout=0.0)
    theirs = PlainLSTM(ours)
    tokens = torch.randint(4, VOCAB, (STREAMS, PIECE + 1))
    torch.testing.assert_close(_our_loss(ours, tokens)(), theirs.loss(tokens, None)[0], rtol=1e-4, atol=1e-4)
    state: tuple[Tensor, Tensor] | None = None

    def plain() -> Tensor:
        nonlocal state
        loss, state = theirs.loss(tokens, state)
        return loss

    return _step(ours, _our_loss(ours, tokens)), _step(theirs, plain)


def build_transformer() -> tuple[Callable[[], object], Callable[[], object]]:
    """A step of training of models with as many parameters."""
    torch.manual_seed(0)
    sizes = {"dim": DIM, "num_heads": HEADS, "num_layers": LAYERS, "max_length": LONG}
    ours = TransformerLanguageModel(vocab=VOCAB, causal=True, positions="learned", dropout=0.0, **sizes)
    theirs = PlainTransformer()
    counts = [sum(each.numel() for each in model.parameters()) for model in (ours, theirs)]
    if counts[0] != counts[1]:
        raise RuntimeError(f"the models differ in size: {counts[0]:,} and {counts[1]:,} parameters")
    tokens = torch.randint(4, VOCAB, (8, LONG + 1))
    return _step(ours, _our_loss(ours, tokens)), _step(theirs, lambda: theirs.loss(tokens))


def cases() -> list[Timing]:
    size = f"{LAYERS} layers of {DIM}, {VOCAB:,} words"
    tape = next(case for case in lstmn.cases() if case.must is not None)
    return [
        replace(tape, what=f"{tape.what} (tape of a language model)"),
        Timing(
            f"LSTM language model, a step of training with {STREAMS * PIECE} tokens, {size}",
            "nn.LSTM in a plain loop, tied weights, fused AdamW",
            build_lstm,
            must=1,
        ),
        Timing(
            f"causal Transformer, a step of training with {8 * LONG:,} tokens, {size}",
            "a plain pre-norm block of the same size with PyTorch's fused attention",
            build_transformer,
            must=1,
        ),
    ]
