"""How the tables came to be, step by step: one file a step in ``versions``, read by Alembic.

``VERSIONS`` names the steps in order, so that a start that has nothing to migrate need not load Alembic.
"""

from __future__ import annotations

VERSIONS = ("0001", "0002", "0003", "0004", "0005")
VERSION_TABLE = "outfitter_version"

__all__ = ["VERSIONS", "VERSION_TABLE"]
