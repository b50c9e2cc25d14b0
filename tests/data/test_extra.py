"""Optional libraries that are missing or do not start."""

import sys
from types import ModuleType

import pytest

from saccade.data.extra import required, start_ray


def test_a_missing_library_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "saccade\[ray\]"'):
        required("ray.data", "ray")


def test_ray_that_does_not_start_says_where_to_look(monkeypatch):
    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.")

    ray = ModuleType("ray")
    ray.init = init
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(OSError, match=r"Ray did not start: The current node timed out during startup\. The folder"):
        start_ray()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    with pytest.raises(
        OSError, match=r"RAY_ADDRESS='10.0.0.1:6379': The current node .* startup\. Correct it, or unset"
    ):
        start_ray()
