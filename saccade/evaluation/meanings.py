"""The meaning of each attention metric in two sentences, shown next to the metric."""

from saccade.registry import nearest

CAUTION = (
    "Attention is not alignment, and not always explanation. "
    "It shows where a model read, not why it decided: trust it as far as the alignment and faithfulness metrics go."
)

MEANINGS: dict[str, str] = {
    "aer": "Alignment error rate: the percentage of links that are wrong or missing; 0 is best. "
    "It compares links with human annotations; a model that translates well can still have a high error rate.",
    "precision": "The percentage of predicted links that annotators marked as sure or possible. "
    "A model that predicts few but safe links has high precision.",
    "recall": "The percentage of the annotators' sure links that were found. "
    "A model that links everything to everything has perfect recall, so read it together with precision.",
    "f": "The harmonic mean of precision and recall, as a percentage. "
    "Unlike the alignment error rate, it does not reward leaving out links when many are only possible.",
    "links": "The number of predicted links. "
    "Fewer links than the annotators made usually mean high precision and low recall.",
    "soft_aer": "The alignment error rate computed on the weights instead of links, as a percentage. "
    "It is higher than the rate of the links if the model attends to other words besides the right ones.",
    "match": "How often the most attended source word is one that annotators linked to the target word, from 0 to 1. "
    "Attention need not match: a model may attend to a neighbour that carries the same information.",
    "mass": "How much of the attention is on source words that annotators linked to the target word, from 0 to 1. "
    "The rest is not necessarily wrong: context words help to translate but are not part of the alignment.",
    "blur": "The entropy of the attention in nats, 0 if each word attends to one position. "
    "Sharp attention is easier to read, but not necessarily more faithful.",
    "shift": "How far to the right of the linked source word most of the attention is, 0 if it is on that word. "
    "A shift means that the model attends next to the word it translates, so extracted links are off by as much.",
    "shift_profile": "How much of the attention is at each offset to the right of the linked source words. "
    "Two peaks mean that the model only sometimes attends next to its word, which a constant shift cannot correct.",
    "coverage": "How much of the source was attended to: 1 if each word received the attention of one target word. "
    "A word without attention may still have been translated, through what its neighbours encode about it.",
    "dropped": "The percentage of source words that received almost no attention. "
    "They may be missing from the target, but function words are often rightly dropped.",
    "repeated": "The percentage of source words that received the attention of more than two target words. "
    "They may be translated twice, but a word that needs three target words is rightly repeated.",
    "agreement": "The share of links that the models of the two directions have in common. "
    "Shared links are mostly right; where the models differ, check before trusting either.",
    "soft_agreement": "How far the attention of the models of the two directions is mutual. "
    "It does not depend on how links are extracted, and decreases with blur.",
    "comprehensiveness": "How much probability the predicted words lose without the most attended source positions. "
    "If it is no higher than for random positions, the weights do not show what the model used.",
    "sufficiency": "How much probability the predicted words lose if only the most attended positions are kept. "
    "Near 0 these positions are enough, and the model does not need the rest.",
    "random_comprehensiveness": "How much probability is lost without equally many random source positions. "
    "It is the baseline for comprehensiveness.",
    "random_sufficiency": "How much probability is lost if only equally many random source positions are kept. "
    "It is the baseline for sufficiency.",
    "uniform": "How much the predicted distribution changes if all source positions get equal weight, from 0 to 1. "
    "If it hardly changes, the weights explain nothing: the model does not depend on them.",
    "permutation": "How much the predicted distribution changes if the weights are shuffled, from 0 to 1. "
    "If it hardly changes, different weights would tell a different story about the same prediction.",
    "uniform_flips": "The percentage of words that would be predicted differently with uniform weights. "
    "A word that stays the same did not depend on where the model looked.",
    "permutation_flips": "The percentage of words that would be predicted differently with shuffled weights. "
    "A word that stays the same did not depend on where the model looked.",
    "gradient_kendall": "Kendall's tau of the weights with gradient times input, from -1 to 1. "
    "Near 0, the positions that the model attends to are not those to which its output is sensitive.",
    "gradient_spearman": "Spearman's rank correlation of the weights with gradient times input, from -1 to 1. "
    "Near 0, the positions that the model attends to are not those to which its output is sensitive.",
}


def meaning(name: str) -> str:
    """The two sentences that explain a metric."""
    if name not in MEANINGS:
        raise ValueError(f"Unknown metric {name!r}.{nearest(name, MEANINGS)}")
    return MEANINGS[name]
