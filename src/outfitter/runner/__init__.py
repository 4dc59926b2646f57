"""Who executes runs, durably? A separate process that asks the coordinator over HTTP and nothing else.

    order ─▶ engine (a workflow for each run) ─▶ working (begin, execute, finish) ─▶ executors ─▶ processes

``places`` says who may work at a time. ``desk`` asks the coordinator, ``outbox`` keeps events until they have
arrived, ``leftovers`` finds processes that nobody looks after any more, ``texts`` makes foreign text harmless,
``folders`` keeps the files of a run private. Names are loaded when they are used: the engine's library takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outfitter.runner.credentials import ClientCredentials, GivenToken, SignIn, names_client
    from outfitter.runner.desk import Desk
    from outfitter.runner.executors.command import CommandExecutor
    from outfitter.runner.executors.prompted import PROMPTED, PromptedExecutor
    from outfitter.runner.folders import empty_folder
    from outfitter.runner.leftovers import end_orphans, end_run
    from outfitter.runner.orchestrator.bounds import Bounds
    from outfitter.runner.orchestrator.orchestrator import Orchestrator, OrchestratorOptions
    from outfitter.runner.orders import Ended, ExecutorSpec, WorkOrder
    from outfitter.runner.outbox import Outbox
    from outfitter.runner.places import Places
    from outfitter.runner.ports import Executor, OrchestratorServer, Presence, Report
    from outfitter.runner.processes import Exit, Program, run_program
    from outfitter.runner.runner import Figures, Runner, RunnerOptions
    from outfitter.runner.texts import event_data, harmless, result_value

__all__ = [
    "PROMPTED",
    "Bounds",
    "ClientCredentials",
    "CommandExecutor",
    "Desk",
    "Ended",
    "Executor",
    "ExecutorSpec",
    "Exit",
    "Figures",
    "GivenToken",
    "Orchestrator",
    "OrchestratorOptions",
    "OrchestratorServer",
    "Outbox",
    "Places",
    "Presence",
    "Program",
    "PromptedExecutor",
    "Report",
    "Runner",
    "RunnerOptions",
    "SignIn",
    "WorkOrder",
    "empty_folder",
    "end_orphans",
    "end_run",
    "event_data",
    "harmless",
    "names_client",
    "result_value",
    "run_program",
]
_FILES = {
    "credentials": ("ClientCredentials", "GivenToken", "SignIn", "names_client"),
    "orchestrator.bounds": ("Bounds",),
    "orchestrator.orchestrator": ("Orchestrator", "OrchestratorOptions"),
    "desk": ("Desk",),
    "executors.command": ("CommandExecutor",),
    "executors.prompted": ("PROMPTED", "PromptedExecutor"),
    "folders": ("empty_folder",),
    "leftovers": ("end_orphans", "end_run"),
    "orders": ("Ended", "ExecutorSpec", "WorkOrder"),
    "outbox": ("Outbox",),
    "places": ("Places",),
    "ports": ("Executor", "OrchestratorServer", "Presence", "Report"),
    "processes": ("Exit", "Program", "run_program"),
    "runner": ("Figures", "Runner", "RunnerOptions"),
    "texts": ("event_data", "harmless", "result_value"),
}


def __getattr__(name: str) -> object:
    """Load a name from its file on first use."""
    from importlib import import_module

    for file, names in _FILES.items():
        if name in names:
            value: object = getattr(import_module(f"outfitter.runner.{file}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'outfitter.runner' has no attribute '{name}'")
