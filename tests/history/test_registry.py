import pytest

from saccade import history


def test_features_have_short_names():
    assert history.names() == [
        "convolved_weights",
        "coverage",
        "coverage_embedding",
        "linguistic_coverage",
        "local_fertility",
        "markov",
        "neural_coverage",
        "positions",
    ]
    assert isinstance(history.create("markov"), history.Markov)
    with pytest.raises(ValueError, match="Did you mean 'markov'"):
        history.create("markow")
