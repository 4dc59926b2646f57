"""The coordinator over HTTP: the routes of document 4 and those around them, as one ASGI application."""

from outfitter.coordinator.api.application import make_api
from outfitter.coordinator.api.office import Office
from outfitter.coordinator.api.openapi import describe
from outfitter.coordinator.api.problems import STATUSES
from outfitter.coordinator.api.table import ROUTES

__all__ = ["ROUTES", "STATUSES", "Office", "describe", "make_api"]
