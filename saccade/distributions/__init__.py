"""Distributions over positions: marginals, mode, samples, log-probability and entropy of what attention selects."""

from saccade.distributions.base import Distribution
from saccade.distributions.bernoulli import Bernoulli
from saccade.distributions.categorical import Categorical

__all__ = ["Bernoulli", "Categorical", "Distribution"]
