"""Synthetic speech, transcribed online: monotonic attention and MoChA compared with soft attention.

All models have the same unidirectional encoder and are trained on the same utterances. Soft attention reads a whole
utterance before it writes the first letter; the others read no frame after the one where they stop.
"""

import random
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import torch
from torch import Tensor
from utterances import HOP, RATE, WINDOW, Utterance, heard_until, make_utterance, make_voice

import saccade
from reproductions.arguments import make_parser
from reproductions.report import markdown_table, publish
from saccade.evaluation import edit_distance
from saccade.evaluation.latency import latency, positions_read
from saccade.interpretation.explorer.media import wav
from saccade.interpretation.plots import plot_attention
from saccade.models import RNNSearch
from saccade.scores import AdditiveScore, MonotonicEnergyScore
from saccade.selections import MoChA, Monotonic
from saccade.tasks import GeneratedText

FOLDER = Path(__file__).resolve().parent
FEWEST, MOST = 3, 8  # phones of an utterance
WIDTH = 4  # frames of a chunk
NOISE, THRESHOLD = 2.0, 0.15  # of the energies in training, and the probability from which evaluation stops
EMBEDDING, HIDDEN = 64, 128
MELS = 20

SIZES = {"embedding_dim": EMBEDDING, "hidden_dim": HIDDEN, "cell": "fast", "query": "state_and_token"}
KEYS = {"query_dim": HIDDEN + EMBEDDING, "key_dim": HIDDEN, "hidden_dim": HIDDEN}
STOPPING = {"noise": NOISE, "threshold": THRESHOLD}
STOPS = partial(MonotonicEnergyScore, **KEYS, offset=-1.0)
MODELS = {
    "monotonic": partial(RNNSearch, **SIZES, online=True, score=STOPS, selection=partial(Monotonic, **STOPPING)),
    "mocha": partial(
        RNNSearch,
        **SIZES,
        online=True,
        score=STOPS,
        selection=partial(MoChA, width=WIDTH, **STOPPING, chunk_score=partial(AdditiveScore, **KEYS)),
    ),
    "soft": partial(RNNSearch, **SIZES, encoder="rnn"),
}
NAMES = {
    "soft": "soft attention, reads all first",
    "monotonic": "monotonic attention, online",
    "mocha": f"MoChA, chunks of {WIDTH}, online",
}


def main(arguments: list[str] | None = None) -> int:
    """Trains the models one after another, measures accuracy and latency, writes table and pictures."""
    parser = make_parser(FOLDER, __doc__, models=MODELS, seed=1)
    parser.add_argument("--steps", type=int, default=2500, help="updates of each model")
    parser.add_argument("--utterances", type=int, default=20_000, help="in training")
    parser.add_argument("--tests", type=int, default=1_000, help="utterances in the test")
    given = parser.parse_args(arguments)

    train, valid, test = make_sets(given.seed, given.utterances, min(200, given.utterances), given.tests)
    given.output.mkdir(parents=True, exist_ok=True)
    results = {}
    for model in given.models:
        folder = given.runs / model
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier reproduction
        started = time.process_time()
        run = fit(model, train, valid, steps=given.steps, seed=given.seed, folder=folder)
        minutes = (time.process_time() - started) / 60
        results[model] = {"minutes": minutes, **measured(run, test, random.Random(given.seed))}
        print(model, results[model], flush=True)
        draw(run, test, given.output / f"{model}.png")
    write(results, given.output)
    return 0


def make_sets(seed: int, *counts: int) -> list[list[Utterance]]:
    """So many utterances of one voice, and so many more."""
    choices, noise = random.Random(seed), torch.Generator().manual_seed(seed)
    voice = make_voice(noise)
    return [[make_utterance(choices, noise, voice, choices.randint(FEWEST, MOST)) for _ in range(n)] for n in counts]


def fit(
    model: str, train: Sequence[Utterance], valid: Sequence[Utterance], *, steps: int, seed: int, folder: Path
) -> saccade.Run:
    """One model, trained as all the others are."""
    return saccade.train(
        task={
            "class": "generation",
            "source": {"class": "audio", "rate": RATE, "mels": MELS, "window": WINDOW / RATE, "hop": HOP / RATE},
            "target": {"class": "text", "tokeniser": "pretokenised"},
            "metrics": ["token_accuracy", "exact_match"],
        },
        model=MODELS[model],
        data={
            "train": [(recording(each.sound), each.letters) for each in train],
            "valid": [(recording(each.sound), each.letters) for each in valid],
        },
        trainer={
            "max_steps": steps,
            "batch_tokens": 2048,
            "learning_rate": 3e-3,
            "schedule": {"class": "cosine", "warmup": min(100, steps)},
            "validate_every": max(1, steps // 4),
            "validate_options": {"beam": 1},
            "metric": "token_accuracy",  # of hard decisions; the loss would choose weights that have not begun to stop
            "log_every": 100,
            "seed": seed,
        },
        output=folder,
    )


def recording(sound: Tensor) -> bytes:
    """The contents of a WAV file."""
    return wav(sound, RATE)


def measured(run: saccade.Run, test: Sequence[Utterance], choices: random.Random) -> dict[str, Any]:
    """Accuracy, and how much had been heard when each letter was written."""
    predictions = heard(run, [utterance.sound for utterance in test])
    wanted = [utterance.letters.split() for utterance in test]
    written = [prediction.text.split() for prediction in predictions]
    errors = sum(edit_distance(ours, theirs) for ours, theirs in zip(written, wanted, strict=True))
    behind = [lag for pair in zip(test, predictions, strict=True) for lag in lags(*pair)] or [0]
    return {
        "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "accuracy": 100.0 * (1 - errors / sum(map(len, wanted))),
        "exact_match": 100.0 * fmean(ours == theirs for ours, theirs in zip(written, wanted, strict=True)),
        "behind": fmean(behind),
        "behind_90": quantiles(behind, n=10)[-1] if len(behind) > 1 else float(behind[0]),
        "letters": len(behind),
        "read": 100.0 * latency([looked(prediction) for prediction in predictions if prediction.text]).proportion,
        "changed": changed(run, test, predictions, choices),
    }


def heard(run: saccade.Run, sounds: Sequence[Tensor]) -> list[GeneratedText]:
    """What is written for each, with room for twice the letters that there are at most."""
    found = run.predict([recording(sound) for sound in sounds], beam=1, max_length=2 * MOST)
    assert all(isinstance(each, GeneratedText) for each in found), "the task writes texts"
    return found  # type: ignore[return-value]


def looked(prediction: GeneratedText) -> Tensor:
    """(letters, frames): where each letter looked; the step that writes the end is left out."""
    assert prediction.weights is not None, "RNNsearch says where it looks"
    return prediction.weights[: len(prediction.tokens)]


def lags(utterance: Utterance, prediction: GeneratedText) -> list[float]:
    """How many milliseconds after the end of its phone had been heard for each letter, up to the first wrong one."""
    found = []
    read = positions_read(looked(prediction)).tolist()
    each = zip(prediction.text.split(), utterance.letters.split(), read, utterance.ends, strict=False)
    for said, wanted, frames, end in each:
        if said != wanted:
            break
        found.append(1000.0 * (min(heard_until(frames), len(utterance.sound)) - end * HOP) / RATE)
    return found


def changed(
    run: saccade.Run, test: Sequence[Utterance], predictions: Sequence[GeneratedText], choices: random.Random
) -> dict[str, int]:
    """How many letters change if a quite different sound, shorter or longer, follows what had been heard.

    Letters for which everything had been heard are not tried.
    """
    sounds, wanted = [], []
    for utterance, prediction in zip(test, predictions, strict=True):
        for place, read in enumerate(positions_read(looked(prediction)).tolist()):
            heard_so_far = heard_until(read)
            left = len(utterance.sound) - heard_so_far
            if left > 0:
                other = choices.choice(test).sound
                other = torch.cat([other, other.flip(0)])[: choices.randint(0, 2 * left)]
                sounds.append(torch.cat([utterance.sound[:heard_so_far], other]))
                wanted.append(prediction.tokens[: place + 1])
    again = heard(run, sounds)
    wrong = sum(other.tokens[: len(tokens)] != tokens for other, tokens in zip(again, wanted, strict=True))
    return {"letters": wrong, "tried": len(wanted)}


def draw(run: saccade.Run, test: Sequence[Utterance], path: Path) -> None:
    """What a model looked at in an utterance of middle length; columns are frames, by the sound they are of."""
    utterance = next((each for each in test if len(each.ends) == 7), test[0])
    attention = heard(run, [utterance.sound])[0].attention
    assert attention is not None, "RNNsearch says where it looks"
    if attention.queries:
        plot_attention([(attention.weights, [*utterance.sounds, "end"], attention.queries)], path)


def write(results: dict[str, Any], output: Path) -> None:
    """A line for each model."""
    header = [
        "model",
        "letters right (100 - error rate)",
        "utterances right",
        "delay after its phone, ms: mean",
    ]
    header += ["90th percentile", "% of the utterance read", "letters changed by unread frames"]
    header += ["parameters", "processor minutes"]
    rows = []
    for model in (model for model in NAMES if model in results):
        r = results[model]
        tried = r["changed"]["tried"]
        unread = f"{r['changed']['letters']:,} of {tried:,}" if tried else "reads all"
        row = [NAMES[model], r["accuracy"], r["exact_match"], r["behind"], r["behind_90"], r["read"], unread]
        rows.append([*row, r["parameters"], r["minutes"]])
    publish(output, results=results, table=markdown_table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
