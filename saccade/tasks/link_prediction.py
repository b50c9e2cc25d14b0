"""Link prediction: is there a link between two nodes of a graph?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.fields import Field, Label, Link
from saccade.tasks.base import Example, Row, tasks
from saccade.tasks.classification import Classification
from saccade.tasks.metric_names import ClassificationMetric

NO, YES = "no", "yes"


@tasks.register("link_prediction")
class LinkPrediction(Classification):
    r"""Learns which nodes are likely to be linked, from data that only contains links.

    .. math:: \mathcal{L} = -\log p(\text{yes} \mid a, b) - \sum_{k=1}^{K} \log p(\text{no} \mid c_k, d_k)

    (c_k, d_k) are pairs of nodes without a known link, drawn uniformly for each training batch. Evaluations draw the
    same pairs every time.

    Args:
        inputs: one input, of the field `link`.
        negatives: K, how many pairs without a link are drawn for each link.
        metrics: as for `classification`. Accuracy depends on `negatives`, AUROC does not.

    Reference:
        Negative samples: Mikolov et al. (2013), arXiv:1310.4546, section 2.2; for graphs: Kipf and Welling (2016),
        arXiv:1611.07308.
    """

    about_unread = (
        "Every row counts as a link. If a column says which pairs are linked, leave out those that are not, or "
        "learn from both with the configuration graphs/link."
    )

    def __init__(
        self,
        *,
        inputs: dict[str, Field],
        negatives: int = 1,
        metrics: Sequence[ClassificationMetric] = ("auroc", "auprc", "accuracy"),
    ) -> None:
        check_count("negatives", negatives)
        super().__init__(inputs=inputs, label=Label(names=[NO, YES], positive=YES), metrics=metrics)
        (self.role, field), *others = self.inputs.items()
        if others or not isinstance(field, Link):
            raise ValueError("link_prediction reads one input, of the field link: {pair: {class: link, graph: ...}}.")
        self.pair = field
        self.negatives = negatives
        self.targets = {}  # nothing is read but the links

    def encode(self, example: Example) -> Row:
        return {self.role: self.pair.encode(example[self.role]), "label": self.label.encode(example.get("label", YES))}

    def collate(self, rows: Sequence[Row], *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        if generator is not None:
            drawn = self.pair.unlinked(self.negatives * len(rows), generator)
            no = self.label.encode(NO)
            rows = [*rows, *({self.role: pair, "label": no} for pair in drawn.tolist())]
        batch = super().collate(rows, generator=generator)
        if "label" in rows[0]:
            batch["label"] = torch.tensor([row["label"] for row in rows])
        return batch

    def joined(self, examples: Iterable[Example]) -> list[Example]:
        """The links, and the unlinked pairs drawn for them."""
        links = [{**example, "label": YES} for example in examples]
        if not links:
            return []
        generator = torch.Generator().manual_seed(1)
        known = [self.pair.encode(link[self.role]) for link in links]
        drawn = self.pair.unlinked(self.negatives * len(links), generator, known)
        return [*links, *({self.role: self.pair.named(pair), "label": NO} for pair in drawn.tolist())]
