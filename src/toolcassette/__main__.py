"""``python -m toolcassette``: the command line. Rule: nothing but the way in."""

from __future__ import annotations

import sys

from toolcassette.cli import main

if __name__ == "__main__":
    sys.exit(main())
