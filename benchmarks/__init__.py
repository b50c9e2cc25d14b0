"""Saccade against its peers, as ratios within one run: `python -m benchmarks`.

Each file has a function `cases()` that returns its rows; see `harness.py` for what a row is.
"""
