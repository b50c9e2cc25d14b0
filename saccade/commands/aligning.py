"""The command that aligns words: align."""

from __future__ import annotations

from saccade.commands.interrupting import leaving_at_once


def align(
    run: str | None = None,
    *,
    source: str | None = None,
    target: str | None = None,
    format: str = "pharaoh",
    one_based: bool = False,
    extract: str = "max",
    threshold: float = 0.2,
    sink: str = "drop",
    subwords: bool = False,
    layer: int = -1,
    head: int | None = None,
    shift: int | None = None,
    choose: str | None = None,
    reverse_model: str | None = None,
    symmetrise: str | None = None,
    gold: str | None = None,
    gold_format: str | None = None,
    gold_one_based: bool = False,
    faithfulness: bool = False,
    score: str | None = None,
    json: bool = False,
    batch_size: int = 32,
    trust_classes: bool = False,
) -> None:
    """Align the words of two texts using a model's attention, or evaluate alignments.

        saccade align runs/model --source a.en --target b.de > out.align
        saccade align runs/en-de --reverse-model runs/de-en --source a.en --target b.de > both.align
        saccade align --score out.align --gold gold.talp

    The model is forced to write the target (forced decoding), and each target word is linked to the source word that it
    attends to most. Words are separated by spaces and counted from 0; each pair of lines gives one line. Alignments
    are Pharaoh or talp (0-0 1p2, p for possible), NAACL (.naacl, .wa) or JSON (.json, .jsonl), by their suffix.

    Args:
        run: the folder of a trained model.
        source: a text file of source sentences, one per line.
        target: a text file of target sentences, one per line.
        format: pharaoh, talp, naacl, or json, which includes words and weights.
        one_based: count words from 1, both in the output and in what --score reads.
        extract: max, threshold (all with at least --threshold), or mutual (words that attend to each other most).
        threshold: the smallest weight that --extract threshold links.
        sink: drop or redistribute the attention to the end of the sentence.
        subwords: align pieces instead of words.
        layer: which layer of a Transformer to read, from 0, or -1 for the last; applies to both models, like --head and
            --shift.
        head: which head to read, from 0 (default: the mean of all).
        shift: 1 reads each word one step later, when it has just been written; often better with Transformers (default:
            as the run was trained, task.alignment_shift).
        choose: use the layer, head and shift with the lowest error on texts with gold links, dev.en,dev.de,dev.talp.
        reverse_model: the folder of a model for the other direction, to symmetrise with.
        symmetrise: intersection, union, grow-diag, grow-diag-final, or grow-diag-final-and, the default.
        gold: a file of gold links: the figures go to standard error, or to standard output with --score.
        gold_format: the format of --gold and --choose; by default taken from the suffix.
        gold_one_based: words in the gold files are counted from 1.
        faithfulness: also test, on the first 50 pairs, whether the model depends on what it attends to.
        score: an alignment file to evaluate against --gold, without a model.
        json: print figures as a JSON object.
        batch_size: how many pairs are aligned together.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    with leaving_at_once():
        from saccade.commands.align_texts import AlignOptions, align_texts, score_file

    given = AlignOptions(**{name: value for name, value in locals().items() if name in AlignOptions._fields})
    if score is not None:
        score_file(score, given)
    else:
        align_texts(run, source, target, given, trust=trust_classes)
