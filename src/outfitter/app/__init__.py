"""Settings and assembly: the place where concrete classes meet. The CLI stands on it."""

from outfitter.app.beside import run_with_runner
from outfitter.app.catalog_files import bundle_of, read_catalog, write_catalog
from outfitter.app.demo import GITIGNORE, write_demo
from outfitter.app.doctor import Finding, Surroundings, Verdict, examine
from outfitter.app.endpoint import open_endpoint
from outfitter.app.exchange import Merge, entries_of, merge_catalog
from outfitter.app.first_start import token_book
from outfitter.app.live import LiveTools, Outfit, arm_plan, make_pool, plan_of, program_register
from outfitter.app.local_api import App, open_local_api
from outfitter.app.options import FIRST_TOKEN, GatewayOptions, Started
from outfitter.app.passbook import Passbook, open_passes
from outfitter.app.registry_place import can_have_registry, has_registry, open_files, rotate_keys
from outfitter.app.running import RunnerChoices, local_server, run_runner, runner_name
from outfitter.app.serving import SeatMaker, run_gateway
from outfitter.app.settings import Settings
from outfitter.app.sharing import Share
from outfitter.app.watching import GatewayStatus, follow_calls, read_status
from outfitter.app.workers import run_worker, run_workers

__all__ = [
    "FIRST_TOKEN",
    "GITIGNORE",
    "App",
    "Finding",
    "GatewayOptions",
    "GatewayStatus",
    "LiveTools",
    "Merge",
    "Outfit",
    "Passbook",
    "RunnerChoices",
    "SeatMaker",
    "Settings",
    "Share",
    "Started",
    "Surroundings",
    "Verdict",
    "arm_plan",
    "bundle_of",
    "can_have_registry",
    "entries_of",
    "examine",
    "follow_calls",
    "has_registry",
    "local_server",
    "make_pool",
    "merge_catalog",
    "open_endpoint",
    "open_files",
    "open_local_api",
    "open_passes",
    "plan_of",
    "program_register",
    "read_catalog",
    "read_status",
    "rotate_keys",
    "run_gateway",
    "run_runner",
    "run_with_runner",
    "run_worker",
    "run_workers",
    "runner_name",
    "token_book",
    "write_catalog",
    "write_demo",
]
