"""What an agent gets, over HTTP: its blueprint, the explanation, and what a change would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.coordinator.api.answers import answer, answer_bytes
from outfitter.coordinator.api.documents import BlueprintDocument, ExplanationDocument
from outfitter.coordinator.api.models import BlueprintQuery, NoQuery, WhatIf, WhatIfShown
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.coordinator.values import Draft

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office


async def _blueprint(office: Office, asked: Asked[BlueprintQuery]) -> Response:
    blueprints = office.coordinator.blueprints
    if asked.query.explain:
        waiting = None if office.pins is None else office.pins.waiting_of
        return answer(await blueprints.explain(asked.id, waiting=waiting))
    return answer_bytes(await blueprints.of(asked.id))


async def _resolve(office: Office, asked: Asked[NoQuery]) -> Response:
    from outfitter.storage import User

    wanted = asked.read(WhatIf)
    puts = [Draft(c.kind, c.document, c.id) for c in wanted.changes if c.document is not None]
    deletes = [User(change.kind, change.id) for change in wanted.changes if change.document is None]
    found = await office.coordinator.blueprints.what_if(wanted.agent_name, puts=puts, deletes=deletes, run=wanted.run)
    return answer(WhatIfShown(found["before"], found["after"]))


ROUTES = (
    Route("GET", "/agents/{name}", "The resolved blueprint; `?explain=true` says where each value came from",
          _blueprint, Answer(200, BlueprintDocument, other=ExplanationDocument), "registry.read", BlueprintQuery,
          concerns="path", problems=(409, 422)),
    Route("POST", "/resolve", "What a change would do to an agent; nothing is stored", _resolve,
          Answer(200, WhatIfShown), "registry.preview", body=WhatIf, problems=(409,)),
)  # fmt: skip
