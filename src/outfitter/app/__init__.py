"""Settings and assembly: the place where concrete classes meet. The CLI stands on it."""

from outfitter.app.demo import GITIGNORE, write_demo
from outfitter.app.doctor import Finding, Surroundings, Verdict, examine
from outfitter.app.exchange import Merge, entries_of, merge_catalog
from outfitter.app.live import LiveTools, Outfit, arm_plan, make_pool, plan_of, program_register
from outfitter.app.settings import Settings

__all__ = [
    "GITIGNORE",
    "Finding",
    "LiveTools",
    "Merge",
    "Outfit",
    "Settings",
    "Surroundings",
    "Verdict",
    "arm_plan",
    "entries_of",
    "examine",
    "make_pool",
    "merge_catalog",
    "plan_of",
    "program_register",
    "write_demo",
]
