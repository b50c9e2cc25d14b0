"""Every test starts from the same random numbers, and hypothesis tries the same examples in every run."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("saccade", deadline=None, derandomize=True)
settings.load_profile("saccade")


@pytest.fixture(autouse=True)
def _same_random_numbers() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
