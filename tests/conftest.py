"""Every test starts from the same random numbers, and hypothesis tries the same examples in every run."""

import io
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

# Some virtual machines announce AMX and then refuse its instructions, which bfloat16 products would use.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import pytest
import torch
from hypothesis import settings

from figures.explorer import ARGUMENTS, NAMES

settings.register_profile("saccade", deadline=None, derandomize=True)
settings.load_profile("saccade")


@pytest.fixture(autouse=True)
def _same_random_numbers() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command on some standard input: exit code, output, errors."""
    from saccade.cli import main

    def called(*arguments: str, given: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8"))
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as leave:
            code = int(leave.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A real browser."""
    api = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()
