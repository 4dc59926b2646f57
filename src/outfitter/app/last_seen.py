"""Where this machine remembers what the servers of one catalog said of themselves, and what that costs an agent.

What is kept and why is ``gateway.last_seen``; the files are ``storage.last_seen``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings

if TYPE_CHECKING:
    from outfitter.storage import LastSeenFolder


def last_seen_of(settings: Settings) -> LastSeenFolder:
    """What was last seen of this catalog's servers; another catalog's servers of the same name are others."""
    from outfitter.storage import LastSeenFolder

    catalog = hashlib.sha256(str(settings.catalog.resolve()).encode()).hexdigest()[:16]
    return LastSeenFolder(settings.state / "last-seen" / catalog)
