"""The command that learns word translations: lexicon."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from saccade.commands.columns import parse_columns, parse_yes_no
from saccade.commands.interrupting import leaving_at_once
from saccade.commands.pictures import check_place

if TYPE_CHECKING:
    from saccade.data.lexicons import Lexicon

METHODS = ("hmm", "ibm1")

Sentences = Sequence[tuple[list[str], list[str]]]
"""The words of both sides of each pair."""


def lexicon(
    data: str | None = None,
    *,
    output: str,
    method: str = "hmm",
    rounds: int = 5,
    alignment: str | None = None,
    dictionary: str | None = None,
    columns: str | None = None,
    header: str | None = None,
    tokeniser: str = "word",
    lowercase: bool = False,
    top: int = 10,
    least: float = 0.01,
) -> None:
    """Learn word translations from sentence pairs, for models with the head lexicon.

        saccade lexicon pairs.tsv --output lexicon.tsv
        saccade lexicon pairs.tsv --alignment links.talp --dictionary words.tsv --output lexicon.tsv
        saccade train translation/rnnsearch-lexicon --data.train pairs.tsv --task.lexicon lexicon.tsv --output runs/a

    Probabilities p(target word | source word) come from expectation maximisation, or from the links of an alignment
    file; for other words, the dictionary's translations are used. Each line of the file is a source word, a target word
    and a probability, separated by tabs.

    Args:
        data: pairs.tsv, .csv, .jsonl, .parquet, or train.en,train.de; not needed with a dictionary alone.
        output: the file to write.
        method: ibm1 (all alignments equally likely) or hmm (neighbours align to neighbours), which starts from ibm1.
        rounds: how often expectation and maximisation alternate, for each of the models.
        alignment: links between the words of each pair, a line for each (0-0 1-2), instead of a method; words are then
            separated by spaces.
        dictionary: a file with a source and a target word in each line, separated by a tab; equally likely.
        columns: the columns of a table to read, as source=en,target=de.
        header: whether TSV and CSV files begin with a header, yes or no.
        tokeniser: how texts are split into words: word (words and punctuation marks) or pretokenised (at spaces).
        lowercase: fold upper case to lower case.
        top: how many translations of a word to keep, the likeliest first.
        least: the smallest probability to keep.
    """
    from saccade.checks import check_count
    from saccade.registry import nearest

    check_count("--rounds", rounds)
    check_count("--top", top)
    if not 0.0 < least < 1.0:
        raise ValueError(f"--least must be above 0 and below 1, got {least}.")
    if method not in METHODS:
        raise ValueError(f"--method {method!r:.40} is unknown.{nearest(method, METHODS)}")
    if tokeniser not in ("word", "pretokenised"):
        raise ValueError(f"--tokeniser must be word or pretokenised, got {tokeniser!r:.40}.")
    if data is None and dictionary is None:
        raise ValueError("There is nothing to learn from: give sentence pairs, --dictionary, or both.")
    if data is None and alignment is not None:
        raise ValueError("--alignment links the words of sentence pairs: give the pairs as well.")
    check_place(output, "--output")
    with leaving_at_once():
        from saccade.data.corpus import Corpus
        from saccade.data.lexicons import read_lexicon, write_lexicon
        from saccade.data.tokenisers import tokenisers
        from saccade.fields import Text

    started = time.monotonic()
    manual = {} if dictionary is None else read_lexicon(dictionary)
    found: Lexicon = {}
    if data is not None:
        kind = "pretokenised" if alignment is not None else tokeniser
        splitter = tokenisers.create(kind, lowercase=lowercase)
        corpus = Corpus(columns=parse_columns(columns), header=parse_yes_no(header, "--header"))
        fields = {"source": Text(tokeniser=kind), "target": Text(tokeniser=kind)}
        pairs = [
            (splitter.parts(example["source"]), splitter.parts(example["target"]))
            for example in corpus.read(data, fields)
        ]
        if not pairs:
            raise ValueError(f"{data} has no sentence pairs.")
        if alignment is not None:
            found = linked(pairs, alignment, top=top, least=least)
        else:
            found = learned(pairs, method, rounds=rounds, top=top, least=least)
    write_lexicon(output, {**manual, **found})
    added = sum(word not in found for word in manual)
    note = f" ({added:,} of them from {dictionary})" if manual else ""
    print(f"{output}: {len(found) + added:,} words{note} in {time.monotonic() - started:.1f} s")


def learned(pairs: Sentences, method: str, *, rounds: int, top: int, least: float) -> Lexicon:
    """The lexicon that expectation maximisation finds."""
    from saccade.data.lexicons import hmm, ibm1, kept

    sides = [["", *sorted({word for pair in pairs for word in pair[side]})] for side in (0, 1)]
    numbers = [{word: number for number, word in enumerate(side)} for side in sides]
    coded = [tuple([numbers[side][word] for word in pair[side]] for side in (0, 1)) for pair in pairs]
    found = ibm1(coded, rounds=rounds)  # type: ignore[arg-type]
    if method == "hmm":
        found = hmm(coded, rounds=rounds, start=found)  # type: ignore[arg-type]
    entries = (
        (sides[0][source], sides[1][target], probability)
        for source, target, probability in zip(*(each.tolist() for each in found), strict=True)
        if source
    )
    return kept(entries, top=top, least=least)


def linked(pairs: Sentences, alignment: str, *, top: int, least: float) -> Lexicon:
    """The relative frequencies of linked words."""
    from saccade.data.lexicons import from_counts
    from saccade.interpretation.alignments import read_alignments

    counts: Counter[tuple[str, str]] = Counter()
    found = read_alignments(alignment, sentences=len(pairs))
    if len(found) != len(pairs):
        raise ValueError(f"{alignment} has links for {len(found):,} pairs, but there are {len(pairs):,} pairs.")
    for number, (links, (source, target)) in enumerate(zip(found, pairs, strict=True), start=1):
        for i, j in links.possible:
            if i >= len(source) or j >= len(target):
                raise ValueError(
                    f"{alignment}, line {number}: the link {i}-{j} is to a word that does not exist: the pair has "
                    f"{len(source)} and {len(target)} words, counted from 0."
                )
            counts[source[i], target[j]] += 1
    return from_counts(counts, top=top, least=least)
