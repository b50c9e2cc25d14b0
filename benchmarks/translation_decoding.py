"""Decoding the 1,000 sentences of Multi30k's test_2016 with a beam of 5, in batches of 64.

Models have equal sizes and random weights. Such models hardly ever end a sentence, so every side is forced to end each
one where its reference ends: ours by the maximum length of each sentence, the peers by logits that allow only the end
token at that step.

Rows with a required ratio give every side the sentences in file order, as users would. Ours groups sentences of similar
length, as `predict` does, and removes finished ones from the batch; JoeyNMT removes them too; Hugging Face's `generate`
continues until the whole batch is done. The peers have no workers: by default they run as one process with two threads,
and rows with equal layouts show two processes of them.
Attention weights are not requested. `decoding_engines.py` compares the Transformer with CTranslate2.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from benchmarks import translation_models as made
from benchmarks.multi30k import ONE_PROCESS, TWO_WORKERS, Comparison, Layout, Table, pairs, rate, temporary_folder, work

BATCH, BEAM = 64, 5
CERTAIN = 1e4

Batch = tuple[list[list[int]], Tensor]
"""Sources with end tokens, and how many tokens to write for each."""


def cases() -> list[Comparison]:
    layouts = (ONE_PROCESS, TWO_WORKERS)
    sides = ("ours-rnn", "joeynmt-rnn", "ours-transformer", "marian")
    table = Table({(side, layout): timed(side, layout) for side in sides for layout in layouts})

    def case(kind: str, against: str, ours: Any, peer: Any, must: float | None = None, aim: float | None = None) -> Any:
        what = f"decoding {kind}, 1,000 sentences, beam 5, batches of 64"
        return Comparison(what, against, table, ours, peer, "sentences/s", must, aim)

    found = []
    for kind, ours, peer, name in (
        ("RNNsearch", "ours-rnn", "joeynmt-rnn", "JoeyNMT's RNN"),
        ("Transformer", "ours-transformer", "marian", "Hugging Face generate"),
    ):
        one, two, alone = (ours, ONE_PROCESS), (ours, TWO_WORKERS), (peer, ONE_PROCESS)
        found += [
            case(kind, f"{name} by default (1 x 2 threads), ours at its best", (one, two), (alone,), must=3),
            *(case(kind, f"{name}, both {layout} threads", ((ours, layout),), ((peer, layout),)) for layout in layouts),
            case(kind, "itself: 2 workers with 1 thread against 1 process with 2", (two,), (one,)),
        ]
    return found


def timed(side: str, layout: Layout) -> Callable[[], float]:
    """Measures the sentences per second of one side."""
    if side == "ctranslate2":  # which has its own workers
        return lambda: rate("translation_decoding", f"ctranslate2-{layout.workers}-{layout.threads}", ONE_PROCESS)
    return lambda: rate("translation_decoding", side, layout)


def batches(folder: str, order: str, worker: int, workers: int) -> list[Batch]:
    """This worker's share, in the order "file", "length" (longest first) or "equal" (also equal output lengths)."""
    test = pairs("test", folder)
    if order != "file":
        test = sorted(test, key=lambda pair: -len(pair[0]))
    made_of = []
    for start in range(0, len(test), BATCH):
        group = test[start : start + BATCH]
        lengths = torch.tensor([len(target) for _, target in group])
        lengths = lengths.max().expand(len(group)) if order == "equal" else lengths
        made_of.append(([[*source, made.EOS] for source, _ in group], lengths))
    return made_of[worker::workers]


def padded(sources: list[list[int]], padding: int) -> Tensor:
    return pad_sequence([torch.tensor(ids) for ids in sources], batch_first=True, padding_value=padding)


def ours(kind: str) -> Callable[[list[list[int]], Tensor], object]:
    from saccade.kernels.allocation import keep_freed_memory
    from saccade.search import beam

    keep_freed_memory()  # as the command line does
    model = made.ours(kind).eval()

    @torch.no_grad()
    def decode(sources: list[list[int]], lengths: Tensor) -> object:
        source = padded(sources, made.PAD)
        encoded = model.encode(source, source != made.PAD)
        found = beam(model, encoded, max_length=lengths, size=BEAM, weights=False)
        _check([len(hypotheses[0].tokens) for hypotheses in found], lengths)
        return found

    return decode


class Ending(nn.Module):
    """A JoeyNMT output layer that only allows the end token at the step where a sentence ends."""

    def __init__(self, inner: nn.Module, end: int) -> None:
        super().__init__()
        self.inner = inner
        self.end = end

    def begin(self, lengths: Tensor) -> None:
        self.lengths, self.step = lengths, 0

    def forward(self, features: Tensor) -> Tensor:
        logits = self.inner(features)
        left = self.lengths[self.lengths >= self.step]  # the others are no longer in the batch
        ending = (left == self.step).repeat_interleave(len(logits) // len(left)).nonzero().squeeze(1)
        logits[ending, ..., self.end] = CERTAIN
        self.step += 1
        return logits


def joeynmt(kind: str) -> Callable[[list[list[int]], Tensor], object]:
    import joeynmt.batch
    from joeynmt.search import search

    model = made.joeynmt(kind).eval()
    ending = model.decoder.output_layer = Ending(model.decoder.output_layer, 3)

    def decode(sources: list[list[int]], lengths: Tensor) -> object:
        source = padded([made.joeynmt_ids(ids) for ids in sources], 1)
        sizes, places = torch.tensor([len(ids) for ids in sources]), torch.arange(len(sources))
        batch = joeynmt.batch.Batch(source, sizes, None, None, None, places, torch.device("cpu"), 1, 3, False)
        places = torch.tensor(batch.sort_by_src_length())  # as its `predict` does
        ending.begin(lengths[places.argsort()])
        most = int(lengths.max()) + 2
        found = search(model=model, batch=batch, max_output_length=most, beam_size=BEAM, beam_alpha=0.6)
        _check((torch.tensor(found[0]) != 1).sum(dim=1).tolist(), ending.lengths, slack=1)
        return found

    return decode


def marian() -> Callable[[list[list[int]], Tensor], object]:
    model = made.marian()

    @torch.no_grad()
    def decode(sources: list[list[int]], lengths: Tensor) -> object:
        source = padded(sources, made.PAD)
        mask = (source != made.PAD).long()
        of_rows = lengths.repeat_interleave(BEAM)

        def end(written: Tensor, log_probs: Tensor) -> Tensor:
            ending = (of_rows == written.shape[1] - 1).nonzero().squeeze(1)
            log_probs[ending] -= CERTAIN
            log_probs[ending, made.EOS] = 0.0
            return log_probs

        most = int(lengths.max()) + 2
        found = model.generate(
            input_ids=source, attention_mask=mask, num_beams=BEAM, max_new_tokens=most, logits_processor=[end]
        )
        _check((found > made.EOS).sum(dim=1).tolist(), lengths)
        return found

    return decode


def ctranslate2(workers: int, threads: int) -> Callable[[list[list[int]], Tensor], Any]:
    from ctranslate2 import Translator

    folder = temporary_folder() / "model"
    made.write_ctranslate2(made.ours("transformer").eval(), folder)
    translator = Translator(str(folder), inter_threads=workers, intra_threads=threads, compute_type="float32")

    def decode(sources: list[list[int]], lengths: Tensor) -> Any:
        tokens = [[made.NAMES[i] for i in ids[:-1]] for ids in sources]  # it adds the end itself
        most = int(lengths.max())
        return translator.translate_batch(tokens, beam_size=BEAM, max_decoding_length=most, asynchronous=True)

    return decode


def _check(written: list[int], lengths: Tensor, slack: int = 0) -> None:
    """Checks that the output has the requested length within 1 %, since few sentences may end early by chance."""
    total, asked = sum(written), int(lengths.sum())
    if not 0.99 * asked <= total <= asked + slack * len(lengths):
        raise AssertionError(f"{total} tokens were written instead of {asked}.")


def main(side: str, folder: str, worker: str, workers: str) -> None:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    name, *rest = side.split("-")
    makers: dict[str, Callable[..., Any]] = {"ours": ours, "equal": ours, "joeynmt": joeynmt, "marian": marian}
    decode = ctranslate2(*map(int, rest)) if name == "ctranslate2" else makers[name](*rest)
    order = {"ours": "length", "equal": "equal", "ctranslate2": "equal"}.get(name, "file")
    todo = batches(folder, order, int(worker), int(workers))

    def run(some: list[Batch]) -> int:
        found = [decode(*batch) for batch in some]
        if name == "ctranslate2":  # answers come later
            for one in found:
                for result in one:
                    result.result()
        return sum(len(sources) for sources, _ in some)

    work(lambda: run(todo[-1:]), lambda: run(todo))


if __name__ == "__main__":
    main(*sys.argv[1:])
