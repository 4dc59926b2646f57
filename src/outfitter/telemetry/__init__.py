"""Where events go: ended calls become OpenTelemetry spans, carried to a receiver in the background; figures read back.

Nothing of OpenTelemetry is imported before a courier is opened, and none is opened unless the environment asks for it.
"""

from outfitter.telemetry.courier import Carrier, Courier
from outfitter.telemetry.destination import Destination, read_destination
from outfitter.telemetry.ended import EndedCall
from outfitter.telemetry.figures import UpstreamFigures, read_upstreams
from outfitter.telemetry.opening import open_courier
from outfitter.telemetry.sampling import Sampling, read_sampling
from outfitter.telemetry.spans import SpanIds, attributes_of, ids_of, name_of

__all__ = [
    "Carrier",
    "Courier",
    "Destination",
    "EndedCall",
    "Sampling",
    "SpanIds",
    "UpstreamFigures",
    "attributes_of",
    "ids_of",
    "name_of",
    "open_courier",
    "read_destination",
    "read_sampling",
    "read_upstreams",
]
