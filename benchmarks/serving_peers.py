"""Other servers under the load of `benchmarks.serving`.

They call `run.predict` from their own batching, with batches of up to 64 inputs and the waiting time of our default.
"""

from typing import Any

from benchmarks.serving import WHAT, Rate
from benchmarks.serving_clients import peer


def cases() -> list[Any]:
    return [
        Rate(WHAT, "LitServe with its batching", lambda: peer("litserve"), 1.2, 2),
        Rate(WHAT, "BentoML with its batching", lambda: peer("bentoml"), 1.2, 2),
    ]
