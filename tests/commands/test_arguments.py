"""Commands as argparse sees them: a dataclass among the parameters of a function is a group of options."""

import argparse
from dataclasses import dataclass

import pytest

from saccade.commands.arguments import add_arguments, changed, grouped, usage_of


@dataclass(frozen=True, kw_only=True)
class Ovens:
    """How it is baked.

    Args:
        most_heat: how hot it gets.
        steam: let in steam.
    """

    most_heat: int = 220
    steam: bool = False

    def __post_init__(self) -> None:
        if self.most_heat > 300:
            raise ValueError(f"--most-heat must be 300 or less, got {self.most_heat}.")


def bake(dough: str, *, oven: Ovens, minutes: int = 30, tin: str) -> None:
    """Bake bread.

    Args:
        dough: what to bake.
        minutes: how long.
        tin: where in.
    """


def parsed(*given: str) -> dict:
    parser = argparse.ArgumentParser()
    add_arguments(parser, bake)
    return grouped(bake, vars(parser.parse_args(given)))


def test_a_group_becomes_one_value() -> None:
    found = parsed("rye", "--tin", "round", "--most-heat", "250")
    assert found == {"dough": "rye", "minutes": 30, "tin": "round", "oven": Ovens(most_heat=250)}


def test_a_group_checks_its_values() -> None:
    with pytest.raises(ValueError, match="--most-heat must be 300 or less, got 400"):
        parsed("rye", "--tin", "round", "--most-heat", "400")


def test_help_lists_a_group_under_its_own_title() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, bake)
    title, _, listed = parser.format_help().partition("how it is baked:")
    assert "--minutes" in title
    assert "how hot it gets (default: 220)" in listed
    assert usage_of("bake", bake) == "saccade bake dough --tin TIN [options]"


def test_what_was_changed() -> None:
    assert changed(Ovens(most_heat=250, steam=True)) == ["--most-heat", "--steam"]
    assert changed(Ovens(most_heat=250), "steam") == []
