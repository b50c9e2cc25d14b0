"""`python -m saccade`, and the `saccade` command."""

from saccade.commands.interrupting import leaving_at_once


def run() -> int:
    """Runs the command line."""
    with leaving_at_once():
        from saccade.cli import main
    return main()


if __name__ == "__main__":
    raise SystemExit(run())
