"""Search: greedy search, beam search and sampling, for any model with `begin`, `step`, `select` and `reorder`."""

from saccade.search.beam_search import beam
from saccade.search.constraints import Constraint, Past
from saccade.search.greedy_search import greedy
from saccade.search.hypothesis import Hypothesis, Searchable
from saccade.search.joint import JointCTC
from saccade.search.sampling import sample

__all__ = ["Constraint", "Hypothesis", "JointCTC", "Past", "Searchable", "beam", "greedy", "sample"]
