"""What each measure of attention means, in two sentences, for wherever it is shown."""

from saccade.registry import nearest

CAUTION = (
    "Attention is not alignment, and not always explanation. "
    "It says where a model read, not why it decided: trust it as far as the measures of alignment and faithfulness go."
)

MEANINGS: dict[str, str] = {
    "aer": "Alignment error rate: the share of links that are wrong or missing, 0 is best. "
    "It judges links by those that people made; a model that translates well may have a high one.",
    "precision": "The share of the links found that people call possible. "
    "A model that links little but surely has a high one.",
    "recall": "The share of people's sure links that were found. "
    "A model that links everything with everything has a high one, so read it beside precision.",
    "f": "The harmonic mean of precision and recall. "
    "Unlike the alignment error rate it does not reward leaving out links where many are merely possible.",
    "links": "How many links were judged. Fewer links than people made usually mean high precision and low recall.",
    "soft_aer": "The alignment error rate with the weights themselves in place of links. "
    "It is higher than that of links if the right words are looked at, but not at them alone.",
    "match": "How often the source word that was looked at most is one that people linked to the target word. "
    "Attention need not match: a model may look at a neighbour from which it can tell the word as well.",
    "mass": "How much of the attention lies on source words that people linked to the target word. "
    "The rest is not wrong by itself: context words help to translate, but are no alignment.",
    "blur": "The entropy of the attention in nats, 0 if each word looks at one place. "
    "Sharp attention is easier to read, but not for that more faithful.",
    "shift": "How far to the right of the linked source word most of the attention lies, 0 if on it. "
    "A shift says that the model finds its word by looking beside it, so links read off it are off by so many.",
    "shift_profile": "How much of the attention lies so many words to the right of the linked source words. "
    "Two peaks say that the model looks beside its word at some times only: a shift cannot mend that.",
    "coverage": "How much of the source was looked at: 1 if each word was, by as much as one target word looks. "
    "A word that was not looked at may still have been translated, from what its neighbours know of it.",
    "dropped": "How many of a hundred source words got almost no attention. "
    "These may be missing in the target; function words often are dropped rightly.",
    "repeated": "How many of a hundred source words got the attention of more than two target words. "
    "These may be translated twice; a word that needs three words in the target is repeated rightly.",
    "agreement": "The share of links that two models, of the two directions, both have. "
    "Links that both have are mostly right, so where they differ, trust neither without a look.",
    "soft_agreement": "How much two models, of the two directions, look back at who looked at them. "
    "It needs no choice of links, and sinks with blur.",
    "comprehensiveness": "How much probability the predicted words lose without the source places looked at most. "
    "If it is no more than that of places taken at random, the weights do not show what the model used.",
    "sufficiency": "How much probability the predicted words lose with the places looked at most alone. "
    "Near 0 these places are enough, and the rest of the attention is for show.",
    "random_comprehensiveness": "How much probability is lost without as many source places taken at random. "
    "It is what comprehensiveness is to be compared with.",
    "random_sufficiency": "How much probability is lost with as many source places taken at random alone. "
    "It is what sufficiency is to be compared with.",
    "uniform": "How much the predicted distribution changes if every source place gets the same weight, from 0 to 1. "
    "If it hardly does, the weights explain nothing: the model does not depend on them.",
    "permutation": "How much the predicted distribution changes if the weights are shuffled, from 0 to 1. "
    "If it hardly does, other weights would tell another story about the same answer.",
    "uniform_flips": "How many of a hundred words would be predicted differently with the same weight everywhere. "
    "A word that stays the same did not depend on where the model looked.",
    "permutation_flips": "How many of a hundred words would be predicted differently with shuffled weights. "
    "A word that stays the same did not depend on where the model looked.",
    "gradient_kendall": "Kendall's tau of the weights with gradient times input, from -1 to 1. "
    "Near 0, what was looked at and what a small change would act through are not the same places.",
    "gradient_spearman": "Spearman's rank correlation of the weights with gradient times input, from -1 to 1. "
    "Near 0, what was looked at and what a small change would act through are not the same places.",
}


def meaning(name: str) -> str:
    """The two sentences that explain a measure."""
    if name not in MEANINGS:
        raise ValueError(f"Unknown measure {name!r}.{nearest(name, MEANINGS)}")
    return MEANINGS[name]
