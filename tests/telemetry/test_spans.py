"""What a span says of a call, which calls become spans, and what the environment may ask for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import Invalid
from outfitter.gateway import CallRecord
from outfitter.telemetry import (
    Destination,
    Sampling,
    SpanIds,
    attributes_of,
    ids_of,
    name_of,
    read_destination,
    read_sampling,
)

HERE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


def record(call_id: str = "c1", **given: object) -> CallRecord:
    facts = {"agent": "a", "token_id": "t", "started_at": 1.0, "duration": 0.1, "outcome": "done", **given}
    return CallRecord(call_id=call_id, **facts)  # pyright: ignore[reportArgumentType] - the facts of a test


@given(st.text(), st.text(), st.text(), st.text())
def test_ids_are_valid_and_the_same_every_time(call_id: str, trace_id: str, span_id: str, parent_id: str) -> None:
    one = ids_of(record(call_id, trace_id=trace_id, span_id=span_id, parent_id=parent_id))
    again = ids_of(record(call_id, trace_id=trace_id, span_id=span_id, parent_id=parent_id))
    assert one == again
    assert 0 < one.trace_id < 1 << 128
    assert 0 < one.span_id < 1 << 64
    assert one.parent_id is None or 0 < one.parent_id < 1 << 64


def test_ids_that_a_record_has_are_kept() -> None:
    trace, span, parent = "ab" * 16, "cd" * 8, "ef" * 8
    kept = ids_of(record(trace_id=trace, span_id=span, parent_id=parent))
    assert kept == SpanIds(int(trace, 16), int(span, 16), int(parent, 16))
    made = ids_of(record("0" * 31 + "1", trace_id="0" * 31 + "1"))
    assert (made.trace_id, made.parent_id) == (1, None)
    assert made.span_id not in {0, 1}
    orphan = ids_of(record(trace_id="0" * 32, span_id=span, parent_id=parent))
    assert orphan.trace_id != 0
    assert orphan.parent_id is None, "a parent of another trace is none"


def test_a_code_that_is_no_code_does_not_get_out() -> None:
    told = attributes_of(record(outcome="failed", code="what the server's error said: sk-123"))
    assert told["error.type"] == "failed"
    assert "sk-123" not in str(told)
    assert attributes_of(record(outcome="failed", code="-32602"))["rpc.response.status_code"] == "-32602"
    assert name_of(record(shown="made up")) == "tools/call"
    assert "made up" not in str(attributes_of(record(shown="made up")))


@pytest.mark.parametrize("kind", ["fast", "full"])
def test_a_share_of_calls_is_that_share_however_their_ids_are_made(kind: str) -> None:
    mark = uuid.uuid4().hex[:24]
    idents = [f"{mark}{n:08x}" if kind == "fast" else uuid.uuid4().hex for n in range(4000)]
    for share in (0.1, 0.5):
        sampling = read_sampling(
            {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": str(share)}
        )
        taken = sum(sampling.takes(record(ident, trace_id=ident)) for ident in idents)
        assert abs(taken / len(idents) - share) < 0.06


def test_a_caller_that_is_sampled_takes_its_calls_with_it() -> None:
    low, high = (record(trace_id=trace * 32, span_id="1" * 16, parent_id="2" * 16) for trace in "1e")
    for name, taken in {
        "": (True, True),
        "always_on": (True, True),
        "always_off": (False, False),
        "traceidratio": (True, False),
        "parentbased_always_off": (True, True),
        "parentbased_traceidratio": (True, True),
    }.items():
        sampling = read_sampling({"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": "0.5"})
        assert (sampling.takes(low), sampling.takes(high)) == taken, name


def test_a_caller_that_is_not_sampled_leaves_no_span_unless_the_sampler_does_not_ask() -> None:
    call = record(trace_id="1" * 32, span_id="1" * 16, parent_id="2" * 16, trace_flags="00")
    assert not read_sampling({}).takes(call)
    assert read_sampling({"OTEL_TRACES_SAMPLER": "always_on"}).takes(call)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "nobody_asks"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        {**HERE, "OTEL_SDK_DISABLED": "True"},
        {**HERE, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_wanted_where_nothing_is_said(environment: Mapping[str, str]) -> None:
    assert read_destination(environment) is None


def test_the_environment_says_where_how_many_and_how_soon() -> None:
    assert read_destination({"OTEL_TRACES_EXPORTER": "otlp"}) == Destination("http://localhost:4318")
    full = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://elsewhere:1",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://me:sk-1@otel.example:4318/v1/traces?key=sk-2",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_SAMPLER": "traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "OTEL_BSP_MAX_QUEUE_SIZE": "10",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5",
        "OTEL_BSP_SCHEDULE_DELAY": "250",
    }
    expected = Destination("https://otel.example:4318", Sampling(0.25, is_parent_based=False), 10, 5, 0.25)
    assert read_destination(full) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:port"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
    ],
)
def test_what_there_is_not_is_an_error_with_its_name(name: str, value: str) -> None:
    with pytest.raises(Invalid):
        read_destination({**HERE, name: value})


@pytest.mark.parametrize("share", ["2", "-0.1", "nan", "half"])
def test_a_share_is_a_number_from_0_to_1(share: str) -> None:
    with pytest.raises(Invalid, match="OTEL_TRACES_SAMPLER_ARG"):
        read_sampling({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": share})
