"""How a courier comes about: OpenTelemetry is imported here, and only here, when somebody wants spans."""

from __future__ import annotations

from outfitter.errors import Invalid, Unavailable
from outfitter.telemetry.courier import Courier
from outfitter.telemetry.destination import Destination


def open_courier(to: Destination) -> Courier:
    """A courier that delivers; Unavailable when OpenTelemetry is not installed, Invalid when it cannot be set up."""
    try:
        from outfitter.telemetry.otlp import Otlp
    except ImportError:
        raise Unavailable("OpenTelemetry is not installed", hint="pip install 'outfitter[otel]'") from None
    try:
        return Courier(Otlp(to.sampling), to)
    except (ImportError, RuntimeError, ValueError) as error:
        raise Invalid(f"the OTEL_* variables cannot be used ({type(error).__name__})") from None
