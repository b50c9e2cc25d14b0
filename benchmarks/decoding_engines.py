"""Decoding 1,000 sentences with a beam of 5: our engine, CTranslate2, and our engine with weights of 8 bits.

CTranslate2 uses our weights and finds the same translations. It takes one length per batch, so all sides get equal
batches of similar length and write as many tokens as the longest reference has. Attention weights are not requested.
"""

from benchmarks.multi30k import ONE_PROCESS, TWO_WORKERS, Comparison, Table
from benchmarks.translation_decoding import timed


def cases() -> list[Comparison]:
    ours, rounded = ("equal-transformer", TWO_WORKERS), ("equal-int8", TWO_WORKERS)
    peers = (("ctranslate2", ONE_PROCESS), ("ctranslate2", TWO_WORKERS))
    table = Table({side: timed(*side) for side in (ours, *peers, rounded)})
    what = "decoding Transformer, 1,000 sentences, beam 5, equal batches of 64"
    best = "CTranslate2 float32, each in its best layout"
    return [
        Comparison(what, best, table, (ours,), peers, "sentences/s", must=1, aim=1.3),
        Comparison(f"{what}, int8", "itself in float32", table, (rounded,), (ours,), "sentences/s", must=1.3, aim=2),
    ]
