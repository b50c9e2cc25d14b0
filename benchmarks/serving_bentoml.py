"""BentoML with a run: python -m benchmarks.serving_bentoml FOLDER PORT."""

import os
import sys

import bentoml

import saccade


@bentoml.service(workers=2, traffic={"timeout": 60, "max_concurrency": 512})
class Dates:
    def __init__(self) -> None:
        self.run = saccade.load(os.environ["SACCADE_RUN"])

    @bentoml.api(batchable=True, max_batch_size=64, max_latency_ms=1000)
    def predict(self, inputs: list[str]) -> list[str]:
        return [answer.text for answer in self.run.predict(inputs)]


if __name__ == "__main__":
    os.environ["SACCADE_RUN"] = sys.argv[1]
    arguments = ["-m", "bentoml", "serve", "benchmarks.serving_bentoml:Dates", "--host", "127.0.0.1"]
    os.execv(sys.executable, [sys.executable, *arguments, "--port", sys.argv[2]])
