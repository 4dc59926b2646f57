"""Where this machine keeps results that were too large for a model: a folder of the state folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.app.settings import Settings

if TYPE_CHECKING:
    from outfitter.storage import ResultFolder

_FOLDER = "results"


def results_of(settings: Settings) -> ResultFolder:
    """The kept results of this machine; all workers and endpoints share them."""
    from outfitter.storage import ResultFolder

    return ResultFolder(settings.state / _FOLDER)
