"""The Luong models and the Transformers with other heads learn a small task from their configurations, made smaller."""

import random

import pytest

import saccade
from saccade.configuration import read_config
from saccade.runs.plan import Plan

SIZES = {
    "embedding_dim": 24,
    "hidden_dim": 48,
    "maxout_dim": 24,
    "num_layers": 1,
    "half_width": 2,
    "dim": 32,
    "num_heads": 2,
    "encoder_layers": 1,
    "feed_forward_dim": 64,
    "dropout": 0.0,
}
TRAINER = {
    "max_epochs": None,
    "max_steps": 1500,
    "batch_tokens": 768,
    "schedule": "constant",
    "validate_every": 50,
    "validate_examples": 50,
    "metric": "token_accuracy",
    "patience": 5,
    "log_every": 500,
}
TASKS = {"reverse": lambda words: words[::-1], "copy": list}
LUONG = ("dot", "general", "concat", "location", "local-m", "local-p", "no-feeding")
HEADS = ("additive", "sparsemax", "entmax")
NAMES = [*(f"translation/luong-{kind}" for kind in LUONG), *(f"translation/transformer-{kind}" for kind in HEADS)]


def pairs(task, count, seed):
    letters = random.Random(seed)
    words = [letters.choices("abcdefgh", k=letters.randint(2, 6)) for _ in range(count)]
    return [(" ".join(w), " ".join(TASKS[task](w))) for w in words]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_learns_from_its_configuration(name, tmp_path) -> None:
    task = "copy" if "local-m" in name or "transformer" in name else "reverse"  # local-m looks near its own place alone
    known = Plan(read_config(name)).model.plain
    run = saccade.train(
        name,
        task={
            "source": {"class": "text", "tokeniser": "pretokenised"},
            "label_smoothing": 0.0,
            "metrics": ["token_accuracy"],
        },
        data={"train": pairs(task, 20_000, 1), "valid": pairs(task, 100, 2)},
        overrides={f"model.{size}": str(value) for size, value in SIZES.items() if size in known},
        trainer={**TRAINER, "learning_rate": 3e-3 if "transformer" in name else 5e-3},
        output=tmp_path / "run",
    )
    figures = run.evaluate(pairs(task, 300, 3), beam=1).figures
    assert figures["token_accuracy"].value >= 95.0
