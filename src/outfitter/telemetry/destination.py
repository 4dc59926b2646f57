"""Whether and where spans go: the standard ``OTEL_*`` variables, as far as Outfitter itself must understand them.

Headers, certificates, compression and time limits of the export are read by the OpenTelemetry SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from outfitter.errors import Invalid
from outfitter.telemetry.sampling import Sampling, read_sampling

_DEFAULT_ENDPOINT = "http://localhost:4318"
_PROTOCOL = "http/protobuf"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where spans go, which of them, and how they are bundled."""

    place: str = _DEFAULT_ENDPOINT
    """Scheme, host and port of the receiver, for messages; what else is in its address may be secret."""
    sampling: Sampling = field(default_factory=Sampling)
    most_waiting: int = 2048
    """How many calls may wait; those that find no room are dropped and counted."""
    most_at_once: int = 512
    delay: float = 5.0
    """Seconds until a bundle goes out that is not full."""


def read_destination(environment: Mapping[str, str]) -> Destination | None:
    """Where the environment wants spans; None when it does not, Invalid when it wants what there is not."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    endpoint = _first(environment, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    exporters = {name.strip().lower() for name in environment.get("OTEL_TRACES_EXPORTER", "").split(",")} - {""}
    if "none" in exporters or not (endpoint or exporters):
        return None
    if exporters - {"otlp"}:
        named = ", ".join(sorted(exporters - {"otlp"}))
        raise Invalid(f"OTEL_TRACES_EXPORTER={named} is not known here", hint="otlp or none")
    protocol = _first(environment, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol and protocol != _PROTOCOL:
        raise Invalid(f"OTLP is spoken as {_PROTOCOL} only, not as {protocol}", hint="the usual port of it is 4318")
    return Destination(
        place=_place_of(endpoint or _DEFAULT_ENDPOINT),
        sampling=read_sampling(environment),
        most_waiting=_number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", 2048),
        most_at_once=_number(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
        delay=_number(environment, "OTEL_BSP_SCHEDULE_DELAY", 5000) / 1000,
    )


def _first(environment: Mapping[str, str], *names: str) -> str:
    return next((found for name in names if (found := environment.get(name, "").strip())), "")


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    given = environment.get(name, "").strip()
    if not given:
        return default
    if not given.isdecimal() or int(given) == 0:
        raise Invalid(f"{name} is a whole number above 0, not '{given}'")
    return int(given)


def _place_of(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise Invalid("the OTLP endpoint is no address", hint="for example http://localhost:4318") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Invalid("the OTLP endpoint begins with http:// or https:// and a host", hint=_DEFAULT_ENDPOINT)
    return f"{parts.scheme}://{parts.hostname}{port}"
