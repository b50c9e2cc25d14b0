"""`python -m saccade`, and the `saccade` command."""

import sys


def run() -> int:
    """Runs the command line; Ctrl-C is no error even while its modules are imported."""
    try:
        from saccade.cli import main

        return main()
    except KeyboardInterrupt:
        print("saccade: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(run())
