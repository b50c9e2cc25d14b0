import json
import random

import numpy as np
import torch

from saccade.training.randomness import random_state, seed_everything, set_random_state, undisturbed


def draw():
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(3).tolist()


def test_a_seed_repeats_everything():
    seed_everything(7)
    first = draw()
    seed_everything(7)
    assert draw() == first
    seed_everything(8)
    assert draw() != first


def test_the_state_survives_json():
    seed_everything(2**40 + 7)
    draw()
    state = json.loads(json.dumps(random_state()))
    first = draw()
    set_random_state(state)
    assert draw() == first


def test_undisturbed_leaves_no_trace():
    seed_everything(7)
    draw()
    state = random_state()
    with undisturbed():
        draw()
    assert random_state() == state
