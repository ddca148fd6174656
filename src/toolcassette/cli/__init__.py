"""The command line: ``toolcassette VERB ...``, or ``python -m toolcassette VERB ...``.

Rule: thin. It asks the floors below and says what they answered; the one floor that knows click, and that prints.
"""

from __future__ import annotations

from toolcassette.cli.app import main

__all__ = ["main"]
