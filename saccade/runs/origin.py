"""The trained model that another one starts from: a run, or a BERT saved by the `transformers` library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade import huggingface
from saccade.artifacts import load_fitting_weights, weights_of
from saccade.configuration import ConfigError, read_config
from saccade.configuration.classes import name_of
from saccade.models import models
from saccade.models.bert import Bert
from saccade.runs.folder import check_run, chosen_weights, learned_alike, verify_run
from saccade.tasks import Task


class WeightsOrigin(NamedTuple):
    """Where the weights of a new model come from."""

    folder: Path
    foreign: bool
    """Whether it is not one of Saccade's runs."""

    def complete(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration with the model arguments that must stay the same (see `Bert.inherited`)."""
        model = config.get("model")
        given = {"class": model} if isinstance(model, str) else dict(model or {})
        if self.foreign:
            own: dict[str, Any] = {"class": "bert", **huggingface.read_arguments(self.folder)}
        else:
            found = read_config(self.folder / "config.yaml").get("model")
            own = found if isinstance(found, dict) else {"class": found}
        named = given.get("class")
        kind = name_of(named) if isinstance(named, type) else str(named)
        same = kind == own.get("class") and kind in models.names()
        if self.foreign and not same:
            raise ConfigError(f"{self.folder} contains a BERT: only `model: bert` can start from it, not {kind:.60}.")
        names = getattr(models.get(kind), "inherited", ()) if same else ()
        return {**config, "model": {**given, **{name: own[name] for name in names if name in own}}}

    def teach(self, task: Task) -> bool:
        """Lets the fields of a task take over what the model's fields learned; returns whether any did."""
        learned = sorted(path for path in (self.folder / "task").glob("*") if path.is_dir())
        taught = False
        for role, field in task.fields.items():
            own = [path for path in learned if path.name == role]
            folders = [self.folder] if self.foreign else [*own, *learned]
            taught |= any(field.adopt(folder) for folder in folders)
        return taught

    def weights(self, outline: nn.Module) -> dict[str, Tensor]:
        """The weights of a foreign model for one of ours, which may be on the meta device; nothing for a run."""
        if not self.foreign:
            return {}
        assert isinstance(outline, Bert)
        return huggingface.read_weights(self.folder, outline)

    def initialise(self, model: nn.Module, weights: Mapping[str, Tensor]) -> str:
        """Copies weights into a model, where names, shapes and types match; reports how many did.

        Args:
            model: the new model.
            weights: those of a foreign model.
        """
        own = weights_of(model)
        if self.foreign:
            fitting = list(weights)
            for name in fitting:
                own[name].copy_(weights[name])
        else:
            fitting = load_fitting_weights(model, chosen_weights(self.folder).file)
        if not fitting:
            raise ValueError(f"No weights of {self.folder} fit this model: names, shapes or types differ throughout.")
        rest = [name for name in own if name not in fitting]
        new = f" (new: {', '.join(rest[:5])}{', ...' if len(rest) > 5 else ''})" if rest else ""
        few = "WARNING: s" if len(fitting) < len(own) / 2 else "S"
        return f"{few}tarted from {len(fitting)} of {len(own)} weight tensors of {self.folder}{new}."

    def learned_alike(self, folder: Path) -> bool:
        """Whether a run learned the same from its data: vocabularies, label names."""
        return not self.foreign and learned_alike(folder, self.folder)


def find_origin(folder: str | os.PathLike[str]) -> WeightsOrigin:
    """The model in a folder; raises if there is no readable one."""
    path = Path(folder)
    if huggingface.is_folder(path) and not (path / "config.yaml").is_file():
        return WeightsOrigin(path, foreign=True)
    chosen_weights(check_run(path))
    verify_run(path)
    return WeightsOrigin(path, foreign=False)
