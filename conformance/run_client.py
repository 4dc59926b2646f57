"""Run the suite's client scenarios for one revision of the protocol, one by one, and print what came of them.

``python -m conformance.run_client 2026-07-28 [SCENARIO…]``. The suite itself starts every scenario at once, which on a
small machine gives failures that are none. Exits 1 when a scenario fails.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

from conformance.setup import SetupFailed, cache_folder, install, node_path, suite_path

_ROOT = Path(__file__).resolve().parents[1]
_SCENARIO_SECONDS = 90
_LISTED = re.compile(r"^  - (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one scenario."""

    scenario: str
    passed: int
    faults: tuple[str, ...]

    @property
    def line(self) -> str:
        """One line of the table, and one for each fault."""
        verdict = "FAILED" if self.faults else "ok"
        return "\n".join([f"  {self.scenario:<44} {self.passed:>3}  {verdict}", *(f"      {f}" for f in self.faults)])


def _suite(*arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """The suite's exit status, and all it prints."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    return subprocess.run(
        [str(node_path()), str(suite_path()), *arguments],
        stdout=PIPE, stderr=STDOUT, text=True, check=False, timeout=seconds, env=environment, cwd=_ROOT,
    )  # fmt: skip


def list_scenarios(revision: str) -> list[str]:
    """The scored client scenarios of a revision."""
    text = _suite("list", "--requirements", revision, seconds=_SCENARIO_SECONDS).stdout
    scored = text.partition("Client scenarios")[2].partition("Run and reported")[0]
    return _LISTED.findall(scored)


def run_scenario(revision: str, scenario: str, folder: Path) -> Report:
    """Start the suite for one scenario and read its checks."""
    command = f"{shlex.quote(sys.executable)} -W ignore -m conformance.client_under_test"
    out = folder / scenario.replace("/", "_")
    try:
        done = _suite(
            "client", "--command", command, "--scenario", scenario, "--spec-version", revision,
            "--timeout", str(_SCENARIO_SECONDS * 1000), "-o", str(out), seconds=_SCENARIO_SECONDS * 1.5,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Report(scenario, 0, (f"the suite did not end within {_SCENARIO_SECONDS * 1.5:.0f} s",))
    out.mkdir(parents=True, exist_ok=True)
    (out / "suite.log").write_text(done.stdout, encoding="utf-8")
    report = _report(scenario, list(_checks(out)), out)
    if done.returncode != 0 and not report.faults:
        return replace(report, faults=(f"the suite is not content; see {out / 'suite.log'}",))
    return report


def _checks(out: Path) -> Iterator[dict[str, Any]]:
    for file in out.rglob("checks.json"):
        yield from json.loads(file.read_text(encoding="utf-8"))


def _report(scenario: str, checks: list[dict[str, Any]], out: Path) -> Report:
    if not checks:
        return Report(scenario, 0, (f"the suite wrote no result; see {out / 'suite.log'}",))
    failed = [check for check in checks if check["status"] == "FAILURE"]
    faults = tuple(f"{check['id']}: {' '.join(str(check.get('errorMessage')).split())[:200]}" for check in failed)
    return Report(scenario, sum(check["status"] == "SUCCESS" for check in checks), faults)


def run(revision: str, only: list[str]) -> int:
    """Run the scenarios and print the table; how many failed."""
    install()
    folder = cache_folder() / "results" / revision
    shutil.rmtree(folder, ignore_errors=True)
    scenarios = only or list_scenarios(revision)
    print(f"MCP {revision}: client scenarios, checks passed")
    reports: list[Report] = []
    for scenario in scenarios:
        reports.append(run_scenario(revision, scenario, folder))
        print(reports[-1].line, flush=True)
    good = sum(not report.faults for report in reports)
    print(f"MCP {revision}: {good} of {len(reports)} scenarios pass", flush=True)
    return len(reports) - good if reports else 1


if __name__ == "__main__":
    try:
        sys.exit(1 if run(sys.argv[1], sys.argv[2:]) else 0)
    except SetupFailed as failure:
        sys.exit(str(failure))
