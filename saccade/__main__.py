"""`python -m saccade`."""

from saccade.cli import main

raise SystemExit(main())
