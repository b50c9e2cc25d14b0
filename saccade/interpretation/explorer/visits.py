"""Visits, and what each of their codes contributes to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class VisitAxis:
    """The visits of a patient, from the first to the last.

    Args:
        names: one per visit: its date or number.
        codes: what was recorded at each.
        days: the time of each in days, if it is known.
        static: what is known about the patient, regardless of time.
    """

    names: list[str]
    codes: Sequence[Sequence[str]]
    days: Sequence[float] | None = None
    static: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("names is empty: a record has at least one visit.")
        for name in ("codes", "days"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.names):
                raise ValueError(f"There are {len(self.names)} visits but {len(given)} {name}: give one per visit.")

    def __len__(self) -> int:
        return len(self.names)

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "kind": "visits",
            "names": list(self.names),
            "codes": [list(codes) for codes in self.codes],
            "days": None if self.days is None else list(self.days),
            "static": list(self.static),
        }


@dataclass(frozen=True, kw_only=True)
class Contributions:
    r"""What each code adds to the score of each outcome; exact, so that their sum plus the bias is the score.

    .. math:: z_y = b_y + \sum_k \omega^{\mathrm{static}}_{ky} + \sum_{j, k} \omega_{jky}

    Shapes:
        bias (outcomes,); static (static codes, outcomes); codes: for each visit (codes, outcomes).

    Args:
        outcomes: their names.
        link: how scores become probabilities: "logistic" for each on its own, "softmax" for all together.
        bias: the score of a patient without any code.
        static: the contributions of what is known about the patient, in the order of the axis.
        codes: the contributions of what was recorded at each visit, in the order of the axis.
    """

    outcomes: Sequence[str]
    link: Literal["logistic", "softmax"]
    bias: Tensor
    static: Tensor
    codes: Sequence[Tensor]

    def __post_init__(self) -> None:
        if self.link not in ("logistic", "softmax"):
            raise ValueError(f"link must be logistic or softmax, got {self.link!r}.")
        for name, tensor in (("bias", self.bias), ("static", self.static), *(("codes", each) for each in self.codes)):
            if tensor.shape[-1:] != (len(self.outcomes),) or not torch.isfinite(tensor).all():
                raise ValueError(
                    f"{name} must be finite numbers for {len(self.outcomes)} outcomes, got {tuple(tensor.shape)}."
                )

    def scores(self) -> Tensor:
        """(outcomes,): the sum of everything."""
        parts = [self.bias.unsqueeze(0), self.static, *self.codes]
        return torch.cat(parts).double().sum(0)

    def probabilities(self) -> Tensor:
        """(outcomes,)."""
        scores = self.scores()
        return scores.sigmoid() if self.link == "logistic" else scores.softmax(0)

    def check(self, axis: VisitAxis) -> None:
        """Raises `ValueError` unless there is one for each code of the axis."""
        found = [len(each) for each in self.codes], len(self.static)
        wanted = [len(each) for each in axis.codes], len(axis.static)
        if found != wanted:
            raise ValueError(f"The contributions {found} do not fit the codes of the visits, {wanted}.")

    def lines(self, axis: VisitAxis, most: int = 20) -> list[str]:
        """The codes that add most to the score of the most probable outcome, or take most from it, as text."""
        chosen = int(self.scores().argmax())
        found = [(float(value[chosen]), "", name) for name, value in zip(axis.static, self.static, strict=True)]
        for visit, names, values in zip(axis.names, axis.codes, self.codes, strict=True):
            found += [(float(v[chosen]), visit, name) for name, v in zip(names, values, strict=True)]
        found = [each for each in found if each[0]]
        found.sort(key=lambda each: -abs(each[0]))
        total, bias = float(self.scores()[chosen]), float(self.bias[chosen])
        head = f"contributions to {self.outcomes[chosen]}: score {total:+.3f}, of which {bias:+.3f} without any code"
        lines = [f"{value:+9.3f}  {visit:12}  {name}" for value, visit, name in found[:most]]
        left = len(found) - len(lines)
        return [head, *lines, *([f"... and {left:,} more"] if left > 0 else [])]

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "outcomes": list(self.outcomes),
            "link": self.link,
            "bias": self.bias.double().tolist(),
            "static": self.static.double().tolist(),
            "codes": [each.double().tolist() for each in self.codes],
        }
