"""Run the suite's server scenarios twice: against the fixture, and against the gateway in front of it.

``python -m conformance.run_gateway``. What the fixture passes and the gateway does not is LOST; what passes with fewer
checks is THIN. Exits 1 when there is one of either. Both are driven at the same time, by the same three runs: the last
stable suite, and the newest with the requirements of each revision.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from subprocess import STDOUT
from typing import Any

from conformance.setup import SetupFailed, cache_folder, install, node_path, suite_path

_ROOT = Path(__file__).resolve().parents[1]
_BIN = Path(sys.executable).parent
_START_SECONDS = 60.0
_RUN_SECONDS = 600.0
_SCENARIO_MILLISECONDS = 60_000
_STAMP = re.compile(r"-20\d\d-\d\d-\d\dT[\dZ-]+$")
_ADDRESS = re.compile(r"Listening on \S*:(\d+)")
RUNS: Mapping[str, tuple[str, ...]] = {
    "0.1.16": (),
    "2025-11-25": ("--requirements", "2025-11-25"),
    "2026-07-28": ("--requirements", "2026-07-28"),
}


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one scenario."""

    passed: int
    skipped: int
    faults: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether no check failed."""
        return not self.faults


Reports = Mapping[str, Report]


def compare(alone: Reports, through: Reports) -> list[str]:
    """What the gateway loses, one line each."""
    found: list[str] = []
    for scenario, expected in alone.items():
        seen = through.get(scenario)
        if not expected.is_good:
            continue
        if seen is None:
            found.append(f"LOST {scenario}: the suite wrote no result")
        elif not seen.is_good:
            found.extend([f"LOST {scenario}", *(f"     {fault}" for fault in seen.faults)])
        elif seen.passed < expected.passed or seen.skipped > expected.skipped:
            found.append(f"THIN {scenario}: {seen.passed} of {expected.passed} checks")
    return found


def read_reports(folder: Path) -> Reports:
    """The results that the suite wrote, by scenario."""
    return dict(_read(file, folder) for file in sorted(folder.rglob("checks.json")))


def _read(file: Path, folder: Path) -> tuple[str, Report]:
    name = _STAMP.sub("", file.parent.relative_to(folder).as_posix()).removeprefix("server-")
    checks: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    failed = [check for check in checks if check["status"] == "FAILURE"]
    faults = tuple(f"{check['id']}: {' '.join(str(check.get('errorMessage')).split())[:160]}" for check in failed)
    count = {status: sum(check["status"] == status for check in checks) for status in ("SUCCESS", "SKIPPED")}
    return name, Report(count["SUCCESS"], count["SKIPPED"], faults)


def run_suite(url: str, run: str, folder: Path) -> Reports:
    """The suite's server scenarios against an endpoint."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    is_stable = not RUNS[run]
    limit = () if is_stable else ("--timeout", str(_SCENARIO_MILLISECONDS))
    program = suite_path("stable" if is_stable else "suite")
    command = [str(node_path()), str(program), "server", "--url", url, *RUNS[run], *limit, "-o", str(folder)]
    with (folder / "suite.log").open("wb") as log:
        # Its exit status says that something failed; which, and whether the fixture fails it too, is in the results.
        subprocess.run(command, stdout=log, stderr=STDOUT, check=False, timeout=_RUN_SECONDS, cwd=_ROOT)
    return read_reports(folder)


# ── what is tested ──


@contextmanager
def started(log: Path, *command: str, **environment: str) -> Generator[subprocess.Popen[bytes]]:
    """A program that runs as long as the block, and all that it says in a file."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=STDOUT, cwd=_ROOT, env={**os.environ, "PYTHONPATH": str(_ROOT), **environment}
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(find: Iterator[str | None], process: subprocess.Popen[bytes], log: Path) -> str:
    """What is found, as soon as it is there."""
    end = time.monotonic() + _START_SECONDS
    for found in find:
        if found is not None:
            return found
        if process.poll() is not None or time.monotonic() > end:
            raise SetupFailed(f"a server did not start: {log.read_text(encoding='utf-8')[-800:]}")
        time.sleep(0.05)
    raise SetupFailed("nothing to wait for")


@contextmanager
def fixture(folder: Path) -> Generator[str]:
    """The URL of the fixture."""
    port_file, log = folder / "fixture.port", folder / "fixture.log"
    port_file.unlink(missing_ok=True)
    command = (sys.executable, "-W", "ignore", "-m", "conformance.fixture_server", "--port-file", str(port_file))

    def look() -> Iterator[str | None]:
        while True:
            yield port_file.read_text(encoding="utf-8") if port_file.exists() else None

    with started(log, *command) as process:
        yield f"http://127.0.0.1:{wait_for(look(), process, log)}/mcp"


@contextmanager
def gateway(folder: Path, servers: Mapping[str, Mapping[str, Any]]) -> Generator[str]:
    """The base of the endpoints of an agent, ``a``, with these servers, which may be programs."""
    catalog, log, port = folder / "catalog", folder / "gateway.log", free_port()
    shutil.rmtree(catalog, ignore_errors=True)
    (catalog / "agents").mkdir(parents=True)
    (folder / "state").mkdir(exist_ok=True)
    agent = {"name": "a", "mcpServers": servers}
    (catalog / "agents" / "a.json").write_text(json.dumps(agent), encoding="utf-8")
    command = (str(_BIN / "outfitter"), "--catalog", str(catalog), "up", "--files", "--open", "--port", str(port))

    def look() -> Iterator[str | None]:
        while True:
            yield str(port) if answers(port) else None

    with started(log, *command, OUTFITTER_STATE=str(folder / "state")) as process:
        wait_for(look(), process, log)
        yield f"http://127.0.0.1:{port}/mcp/a"


def free_port() -> int:
    """A port that was free a moment ago."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def answers(port: int) -> bool:
    """Whether a gateway takes calls on the port."""
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(f"http://127.0.0.1:{port}/ready", timeout=1) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (URLError, OSError):
        return False


def run() -> int:
    """Run everything and print the table; how much was lost."""
    install()
    folder = cache_folder() / "results" / "gateway"
    folder.mkdir(parents=True, exist_ok=True)
    losses = 0
    with (
        fixture(folder) as alone,
        gateway(folder, {"fixture": {"url": alone}}) as endpoint,
        ThreadPoolExecutor() as pool,
    ):
        for name in RUNS:
            expected = pool.submit(run_suite, alone, name, folder / f"{name}-alone")
            seen = run_suite(f"{endpoint}/fixture", name, folder / name)
            lost = compare(expected.result(), seen)
            good = sum(report.is_good for report in seen.values())
            could = sum(report.is_good for report in expected.result().values())
            checks = sum(report.passed for report in seen.values())
            print(f"suite {name}: {good} of {could} server scenarios through the gateway, {checks} checks")
            print("".join(f"  {line}\n" for line in lost), end="", flush=True)
            losses += len(lost) + (not could)
    return losses


if __name__ == "__main__":
    try:
        sys.exit(1 if run() else 0)
    except SetupFailed as failure:
        sys.exit(str(failure))
