"""python run.py "an input" ["another input" ...]: what the exported model in this folder answers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from saccade_runner import Model

if __name__ == "__main__":
    model = Model(Path(__file__).parent)
    for found in model.predict(sys.argv[1:]):
        answer = found["answer"]
        if isinstance(answer, list):
            parts = [", ".join(part) if isinstance(part, list) else part for part in answer]
        shown = model.task.about["between"].join(parts) if isinstance(answer, list) else answer
        print("" if answer is None else shown, f"{found['score']:.4f}", sep="\t")
