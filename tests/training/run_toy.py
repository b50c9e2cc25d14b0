"""Trains the toy task in its own process: `python -m tests.training.run_toy folder '{"max_steps": 30}' [--resume]`."""

import json
import sys
import time

from saccade.training import Trainer, seed_everything
from tests.tasks.toy import NeighbourSums, SumModel, examples


def train(
    output, *, resume=False, dropout=0.3, pause=0.0, validate=True, hidden_dim=11, unused=False, count=61, **options
):
    trainer = Trainer(**{"batch_tokens": 97, "log_every": 10, **options})
    task = NeighbourSums()
    if pause:
        original = task.loss

        def slowly(model, batch):
            time.sleep(pause)
            return original(model, batch)

        task.loss = slowly
    seed_everything(trainer.seed)
    model = SumModel(dropout=dropout, hidden_dim=hidden_dim, unused=unused)
    encoded = [task.encode(example) for example in examples(count, seed=1)]
    valid = examples(19, seed=2) if validate else None
    return model, trainer.fit(task=task, model=model, train=encoded, valid=valid, output=output, resume=resume)


if __name__ == "__main__":
    train(sys.argv[1], resume="--resume" in sys.argv, **json.loads(sys.argv[2]))
