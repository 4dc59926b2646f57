"""From definitions that stand in code to servers that can be connected, armed with what this process has.

No catalog and no registry: the definition is all there is. What an agent of a catalog gets is ``resolution``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from outfitter.catalog import Agent, Catalog, InlineServer, MCPServer
from outfitter.errors import InvalidServer, OutfitterError, Refused
from outfitter.resolution import ArmedServer, arm_each, resolve, server_wants
from outfitter.upstream.secrets import fetch_supply, make_providers, secrets_folder

_OWNER = "this-program"


def arm_servers(
    servers: Iterable[MCPServer], environment: Mapping[str, str] | None = None
) -> dict[str, ArmedServer | OutfitterError]:
    """Each server by its name, armed, or the error why it cannot be; one missing variable stops one server.

    Without an environment it is this process's own.
    """
    variables = os.environ if environment is None else environment
    return {server.name: _arm_one(server, variables) for server in servers}


def _arm_one(server: MCPServer, environment: Mapping[str, str]) -> ArmedServer | OutfitterError:
    if server.args_factory is not None:
        message = f"server '{server.name}' makes its arguments from the parameters of a section"
        return InvalidServer(message, hint="settle them first: server.with_args(…), or render the prompt")
    try:
        plan = resolve(Agent(_OWNER, servers={server.name: InlineServer(server)}), Catalog())
        wants = server_wants(plan.servers[server.name])
        # Whoever wrote the program has its whole environment anyway: nothing is kept back.
        providers = make_providers(environment, secrets_folder(environment), keeps_own=False)
        supply = fetch_supply(wants, environment, providers, keeps_own=False)
    except Refused as several:
        return several.problems[0] if len(several.problems) == 1 else several
    except OutfitterError as error:
        return error
    return arm_each(plan, supply)[server.name]
