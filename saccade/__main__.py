"""`python -m saccade`, and the `saccade` command: first of all, Ctrl-C gets a short answer in place of a traceback."""

import os

try:
    import signal
    import threading

    from saccade.commands.interrupting import leave

    BEFORE = signal.getsignal(signal.SIGINT)
    OURS = BEFORE is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if OURS:  # else it is ignored, as in the background, or not ours to set
        signal.signal(signal.SIGINT, leave)
except KeyboardInterrupt:
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def run() -> int:
    """Runs the command line."""
    from saccade.cli import main

    try:
        if OURS:
            signal.signal(signal.SIGINT, BEFORE)
        return main()
    except KeyboardInterrupt:  # before the command line began or after it ended
        os.write(2, b"Interrupted.\n")
        return 130
    finally:
        if OURS:  # while Python shuts down, nothing is left to be saved
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    raise SystemExit(run())
