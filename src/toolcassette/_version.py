"""The version of this package, and nothing else.

Rule: the one place it is written; the build backend and the ``producer`` of every recording read it from here.
"""

from __future__ import annotations

__version__ = "0.1.0"
