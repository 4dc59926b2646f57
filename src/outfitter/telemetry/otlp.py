"""The way out: spans made from calls, given to OpenTelemetry's own OTLP exporter over HTTP.

The only file that imports OpenTelemetry; ``opening`` imports it when a courier is wanted. No tracer is used: the call
has ended, and its span is written down whole.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib import metadata

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from outfitter.telemetry.ended import EndedCall
from outfitter.telemetry.sampling import Sampling
from outfitter.telemetry.spans import LONGEST, attributes_of, error_of, ids_of, name_of

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_SECOND = 1_000_000_000


class Otlp:
    """Carries calls to an OTLP receiver; the exporter reads its ``OTEL_*`` variables itself."""

    def __init__(self, sampling: Sampling) -> None:
        """Connect to nothing yet."""
        self._sampling = sampling
        self._exporter = OTLPSpanExporter()
        self._resource = _resource()
        self._scope = InstrumentationScope("outfitter", metadata.version("outfitter"))
        self._hush = _Hush()
        self._logger = logging.getLogger(OTLPSpanExporter.__module__)
        self._logger.addFilter(self._hush)

    def carry(self, calls: Sequence[EndedCall]) -> str:
        """Deliver the spans of those calls that are sampled; says why not, or nothing."""
        spans = [self._span(call) for call in calls if self._sampling.takes(call)]
        self._hush.status = None
        if not spans or self._exporter.export(spans) is SpanExportResult.SUCCESS:
            return ""
        status = self._hush.status
        return "no answer" if status is None else f"the answer was HTTP {status}"

    def close(self) -> None:
        """End an attempt that is under way, and connections."""
        self._exporter.shutdown()
        self._logger.removeFilter(self._hush)

    def _span(self, call: EndedCall) -> ReadableSpan:
        ids, error, began = ids_of(call), error_of(call), int(call.started_at * _SECOND)
        parent = None
        if ids.parent_id is not None:
            parent = SpanContext(ids.trace_id, ids.parent_id, is_remote=True, trace_flags=_SAMPLED)
        return ReadableSpan(
            name_of(call),
            context=SpanContext(ids.trace_id, ids.span_id, is_remote=False, trace_flags=_SAMPLED),
            parent=parent,
            resource=self._resource,
            attributes=attributes_of(call),
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR, call.rule[:LONGEST] or None) if error else Status(StatusCode.UNSET),
            start_time=began,
            end_time=began + int(call.duration * _SECOND),
            instrumentation_scope=self._scope,
        )


class _Hush(logging.Filter):
    """Keeps the exporter from telling of every attempt; the courier tells once. Remembers the receiver's answer."""

    def __init__(self) -> None:
        super().__init__()
        self.status: int | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR and isinstance(record.args, tuple):
            self.status = next((one for one in record.args if isinstance(one, int)), None)
        return False


def _resource() -> Resource:
    """Who sends the spans: what the environment says, else Outfitter."""
    found = Resource.create({SERVICE_VERSION: metadata.version("outfitter")})
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "outfitter"}))
    return found
