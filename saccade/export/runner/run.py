"""python run.py "an input" ["another input" ...]: what the exported model in this folder answers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from saccade_runner import Model

if __name__ == "__main__":
    for answer in Model(Path(__file__).parent).predict(sys.argv[1:]):
        print(answer["answer"], f"{answer['score']:.4f}", sep="\t")
