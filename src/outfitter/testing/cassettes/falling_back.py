"""Who is asked for what is not on the cassette? A live server, connected by the first question."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from outfitter.catalog import MCPServer
from outfitter.errors import UpstreamError
from outfitter.formats import Exchange
from outfitter.resolution import ArmedStdio
from outfitter.testing.cassettes.live import armed
from outfitter.testing.cassettes.masking import Masker
from outfitter.testing.cassettes.replaying import Fallback
from outfitter.testing.cassettes.writing import append_entry
from outfitter.testing.exchange import Message
from outfitter.upstream import Pool, SpawnRules


@asynccontextmanager
async def open_fallback(
    server: MCPServer, *, add_to: Path | None = None, masker: Masker | None = None
) -> AsyncGenerator[Fallback]:
    """Who asks a live server; it is started by the first question. Its answers are added to a file if so wished."""
    ready = armed(server)
    allowed = frozenset(ready.transport.env) if isinstance(ready.transport, ArmedStdio) else frozenset[str]()
    async with Pool(rules=SpawnRules(allowed_env=allowed, inline_code=True, secret_args=True)) as pool:
        connection = pool.connect(ready)

        async def ask(method: str, params: Message) -> Exchange:
            plain = {key: value for key, value in params.items() if key != "_meta"}
            try:
                result = await connection.use(lambda link: link.request(method, plain))
                heard = Exchange(method, plain, result)
            except UpstreamError as error:
                told: Message = {"code": error.rpc_code, "message": error.message}
                heard = Exchange(method, plain, error=told if error.data is None else {**told, "data": error.data})
            if add_to is not None and masker is not None:
                append_entry(add_to, masker.exchange(heard))
            return heard

        yield ask
