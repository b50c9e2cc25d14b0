"""Every test starts from the same random numbers, and hypothesis tries the same examples in every run."""

import os
from collections.abc import Iterator

# Some virtual machines announce AMX and then refuse its instructions, which bfloat16 products would use.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

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
