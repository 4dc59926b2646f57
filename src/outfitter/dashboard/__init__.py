"""THE PAGES: what each agent gets, why, and what it did, for people who would rather look than read JSON.

Rendered on the server from what the API says; no build, no request to any other host. Neighbours: ``coordinator`` says
everything that is shown, ``app`` puts it beside the API.
"""

from __future__ import annotations

from outfitter.dashboard.application import COOKIE, Dashboard, make_dashboard
from outfitter.dashboard.pages import HANDLERS

__all__ = ["COOKIE", "HANDLERS", "Dashboard", "make_dashboard"]
