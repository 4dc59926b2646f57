"""Settings and assembly: the place where concrete classes meet. The CLI stands on it."""

from outfitter.app.demo import GITIGNORE, write_demo
from outfitter.app.doctor import Finding, Surroundings, Verdict, examine
from outfitter.app.exchange import Merge, entries_of, merge_catalog
from outfitter.app.live import LiveTools, Outfit, arm_plan, make_pool, plan_of, program_register
from outfitter.app.serving import GatewayOptions, run_gateway, token_book
from outfitter.app.settings import Settings
from outfitter.app.sharing import Share
from outfitter.app.watching import GatewayStatus, ServerNumbers, follow_calls, read_status
from outfitter.app.workers import run_worker, run_workers

__all__ = [
    "GITIGNORE",
    "Finding",
    "GatewayOptions",
    "GatewayStatus",
    "LiveTools",
    "Merge",
    "Outfit",
    "ServerNumbers",
    "Settings",
    "Share",
    "Surroundings",
    "Verdict",
    "arm_plan",
    "entries_of",
    "examine",
    "follow_calls",
    "make_pool",
    "merge_catalog",
    "plan_of",
    "program_register",
    "read_status",
    "run_gateway",
    "run_worker",
    "run_workers",
    "token_book",
    "write_demo",
]
