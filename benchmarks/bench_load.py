"""Loading and validating 1,000 agents and 200 servers, against reading the files and ``json.loads`` alone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Ratio, compare
from outfitter.resolution import check_catalog
from outfitter.storage import CatalogFolder

_LIMIT = 4.0
_LINEAR = 13.0


def make_catalog(root: Path, agents: int, servers: int) -> None:
    """Write a catalog of so many agents and servers; each agent has a role, two capabilities and five servers."""
    for kind in ("mcp-servers", "capabilities", "agents"):
        (root / kind).mkdir(parents=True)
    for number in range(servers):
        schema = {f"X-Scope-{h}": {"type": "string", "description": "Scope of the data in view"} for h in range(4)}
        entry = {
            "id": f"server-{number}",
            "name": f"Server {number}",
            "description": "A server of the registry",
            "url": f"http://localhost:{9000 + number}/mcp",
            "header_schema": {**schema, "X-API-Key": {"type": "string", "required": True, "sensitive": True}},
            "default_headers": {"X-Scope-0": "default", "X-API-Key": "${API_KEY}"},
        }
        (root / "mcp-servers" / f"server-{number}.json").write_text(json.dumps(entry, indent=2))
    for number in range(10):
        uses = {"shared": {"ref": f"server-{number % servers}", "headers": {"X-Scope-1": "shared"}}}
        text = json.dumps({"name": f"capability-{number}", "text": "Use it well.", "mcpServers": uses}, indent=2)
        (root / "capabilities" / f"capability-{number}.json").write_text(text)
    for number in range(agents):
        uses = {
            f"alias-{k}": {"ref": f"server-{(number + k) % servers}", "headers": {"X-Scope-0": f"team-{number}"}}
            for k in range(5)
        }
        agent = {
            "name": f"agent-{number}",
            "description": "An agent of the team",
            "role": "developer",
            "system_prompt": "You work on the team's code. " * 20,
            "capabilities": [f"capability-{number % 10}"],
            "mcpServers": uses,
        }
        (root / "agents" / f"agent-{number}.json").write_text(json.dumps(agent, indent=2))


def read_and_parse(root: Path) -> None:
    """The yardstick: read every file and parse it."""
    for path in root.glob("*/*.json"):
        json.loads(path.read_bytes())


def load_and_validate(root: Path) -> None:
    """The subject: load every file into checked values and resolve every agent."""
    check = check_catalog(CatalogFolder(root).load())
    if check.problems:
        raise RuntimeError(str(check.problems[0]))


def measure() -> Iterator[Ratio]:
    """The ratio of the issue, and growth with ten times the files."""
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large", Path(folder) / "small"
        make_catalog(large, 1000, 200)
        make_catalog(small, 100, 20)
        subject, yardstick = compare(lambda: load_and_validate(large), lambda: read_and_parse(large), rounds=7)
        yield Ratio("load and validate 1,000 agents × 200 servers", subject, yardstick, "read + json.loads", _LIMIT)
        ten, one = compare(lambda: load_and_validate(large), lambda: load_and_validate(small), rounds=5)
        yield Ratio("load and validate 10 × the files", ten, one, "100 agents × 20 servers", _LINEAR)
