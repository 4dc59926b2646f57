"""Settings and assembly: the place where concrete classes meet. The CLI stands on it.

What is about squads is loaded when it is used: it reads teams and the files of many other programs.
"""

from typing import TYPE_CHECKING

from outfitter.app.approvals import MachineApprover, approvals_of
from outfitter.app.beside import run_with_runner
from outfitter.app.budgets import agents_here, budgets_here, counted_here
from outfitter.app.catalog_files import bundle_of, read_catalog, write_catalog
from outfitter.app.demo import GITIGNORE, write_demo
from outfitter.app.doctor import Finding, Surroundings, Verdict, examine
from outfitter.app.endpoint import open_endpoint
from outfitter.app.exchange import Merge, entries_of, merge_catalog
from outfitter.app.first_start import token_book
from outfitter.app.last_seen import last_seen_of, note_live
from outfitter.app.live import LiveTools, Outfit, arm_plan, make_pool, plan_of, program_register
from outfitter.app.local_api import App, open_local_api
from outfitter.app.options import FIRST_TOKEN, GatewayOptions, Started
from outfitter.app.passbook import Passbook, open_passes
from outfitter.app.pins import pending_here, pins_here, pins_of, waiting_here, waiting_of
from outfitter.app.probing import lone_probe
from outfitter.app.registry_place import can_have_registry, has_registry, open_files, rotate_keys
from outfitter.app.results import results_of
from outfitter.app.running import RunnerChoices, local_server, run_runner, runner_name
from outfitter.app.serving import SeatMaker, run_gateway
from outfitter.app.settings import Settings
from outfitter.app.sharing import Share
from outfitter.app.squad_files import SQUAD_FILE, SquadHome, catalog_of, find_home, home_at
from outfitter.app.watching import GatewayStatus, ServerNumbers, follow_calls, read_status
from outfitter.app.workers import run_worker, run_workers

if TYPE_CHECKING:
    from outfitter.app.official import LATEST, Offer, OfficialRegistry, open_official
    from outfitter.app.squad_check import check_squad, waiting_findings
    from outfitter.app.squad_import import Choice, Merged, find_files, merge_found, read_file
    from outfitter.app.squad_init import FIRST_SERVERS, NewSquad, new_squad, preset_roles, role_of, roles_of
    from outfitter.app.team_state import OpenTeam, find_team, open_team

__all__ = [
    "FIRST_SERVERS",
    "FIRST_TOKEN",
    "GITIGNORE",
    "LATEST",
    "SQUAD_FILE",
    "App",
    "Choice",
    "Finding",
    "GatewayOptions",
    "GatewayStatus",
    "LiveTools",
    "MachineApprover",
    "Merge",
    "Merged",
    "NewSquad",
    "Offer",
    "OfficialRegistry",
    "OpenTeam",
    "Outfit",
    "Passbook",
    "RunnerChoices",
    "SeatMaker",
    "ServerNumbers",
    "Settings",
    "Share",
    "SquadHome",
    "Started",
    "Surroundings",
    "Verdict",
    "agents_here",
    "approvals_of",
    "arm_plan",
    "budgets_here",
    "bundle_of",
    "can_have_registry",
    "catalog_of",
    "check_squad",
    "counted_here",
    "entries_of",
    "examine",
    "find_files",
    "find_home",
    "find_team",
    "follow_calls",
    "has_registry",
    "home_at",
    "last_seen_of",
    "local_server",
    "lone_probe",
    "make_pool",
    "merge_catalog",
    "merge_found",
    "new_squad",
    "note_live",
    "open_endpoint",
    "open_files",
    "open_local_api",
    "open_official",
    "open_passes",
    "open_team",
    "pending_here",
    "pins_here",
    "pins_of",
    "plan_of",
    "preset_roles",
    "program_register",
    "read_catalog",
    "read_file",
    "read_status",
    "results_of",
    "role_of",
    "roles_of",
    "rotate_keys",
    "run_gateway",
    "run_runner",
    "run_with_runner",
    "run_worker",
    "run_workers",
    "runner_name",
    "token_book",
    "waiting_findings",
    "waiting_here",
    "waiting_of",
    "write_catalog",
    "write_demo",
]
_SELDOM = {
    **dict.fromkeys(("LATEST", "Offer", "OfficialRegistry", "open_official"), "official"),
    **dict.fromkeys(("OpenTeam", "find_team", "open_team"), "team_state"),
    **dict.fromkeys(("check_squad", "waiting_findings"), "squad_check"),
    **dict.fromkeys(("Choice", "Merged", "find_files", "merge_found", "read_file"), "squad_import"),
    **dict.fromkeys(("FIRST_SERVERS", "NewSquad", "new_squad", "preset_roles", "role_of", "roles_of"), "squad_init"),
}


def __getattr__(name: str) -> object:
    """Load what is seldom used on first use."""
    if name not in _SELDOM:
        raise AttributeError(f"module 'outfitter.app' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(f"outfitter.app.{_SELDOM[name]}"), name)
    globals()[name] = value
    return value
