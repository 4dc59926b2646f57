"""The audit database in PostgreSQL, which several gateways may share: each drains its own journal into it.

A piece of a journal goes over as one JSON text that the server takes apart, in one transaction with the note how far
that journal was read: a process that dies in between takes the same piece again, and nothing twice. Writers take turns,
so that sequence numbers are seen in their order. The URL holds a password: no message of this module quotes it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from outfitter.basics import Secret
from outfitter.errors import Invalid, StorageUnavailable, Unavailable
from outfitter.storage.rows import COLUMNS, INTEGERS, KEPT, REALS, TIMED, Row, place_of, rows_of

if TYPE_CHECKING:
    import psycopg

_NAMES = ", ".join(COLUMNS)
_TYPES = dict.fromkeys(REALS, "double precision") | dict.fromkeys(INTEGERS, "bigint") | dict.fromkeys(KEPT, "json")


def _column(name: str) -> str:
    return f"{name} text" if name in KEPT else f"{name} {_TYPES.get(name, 'text')} NOT NULL"


def _value(name: str) -> str:
    """What is taken of a line; what it leaves out is empty, but a call has an id."""
    if name in KEPT:
        return f"{name}::text"
    return name if name == "call_id" else f"coalesce({name}, {0 if name in _TYPES else chr(39) * 2})"


_SEQ = "seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS outfitter_taken (segment text PRIMARY KEY, place bigint NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS outfitter_calls ({', '.join((_SEQ, *map(_column, COLUMNS)))})",
    "CREATE INDEX IF NOT EXISTS outfitter_calls_by_time ON outfitter_calls (started_at)",
)
_TAKE = (
    f"INSERT INTO outfitter_calls ({_NAMES}) SELECT {', '.join(map(_value, COLUMNS))} FROM json_to_recordset(%s::json) "  # noqa: S608 - names of ours
    f"AS line ({', '.join(f'{name} ' + _TYPES.get(name, 'text') for name in COLUMNS)})"
)
_FIRST = "INSERT INTO outfitter_taken VALUES (%(segment)s, %(end)s) ON CONFLICT DO NOTHING"
_NEXT = "UPDATE outfitter_taken SET place = %(end)s WHERE segment = %(segment)s AND place = %(place)s"
_SINCE = (
    "SELECT server, outcome, duration FROM outfitter_calls WHERE started_at >= %s ORDER BY started_at DESC LIMIT %s"
)
_REMOVE = """
DELETE FROM outfitter_calls WHERE seq IN
(SELECT seq FROM outfitter_calls WHERE started_at < %s ORDER BY started_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""
# A gateway that hangs in its turn loses it, and those that wait for it do not wait for ever.
_TURN = """
SELECT set_config('lock_timeout', '10s', true), set_config('idle_in_transaction_session_timeout', '30s', true),
  pg_advisory_xact_lock(hashtext('outfitter_calls'))
"""
_FILTERS = {
    "agent": "agent = %s", "server": "server = %s", "tool": "%s IN (tool, shown)", "outcome": "outcome = %s",
    "decision": "decision = %s", "run": "run_id = %s", "since": "started_at >= %s::float8",
    "until": "started_at < %s::float8",
}  # fmt: skip
_HINT = "write postgresql://USER:PASSWORD@HOST/NAME"
# A server that has gone without a word is noticed after seconds; the URL may say otherwise.
_DEFAULTS = {
    "application_name": "outfitter",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
}


@dataclass(slots=True)
class PostgresAudit:
    """The audit database behind a ``postgresql://`` URL. Used by one thread at a time."""

    url: Secret
    _open: psycopg.Connection | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what could never be connected before anything begins."""
        try:
            import psycopg
        except ImportError:
            hint = "pip install 'outfitter[postgres]'"
            raise Unavailable("the driver for PostgreSQL is not installed", hint=hint) from None
        try:
            self._parameters()
        except psycopg.Error:  # its message quotes what it could not read
            raise Invalid("OUTFITTER_DATABASE is no URL of a PostgreSQL", hint=_HINT) from None

    def place(self, segment: str) -> int:
        """How far a segment has been taken."""
        with self._asking() as base:
            row = _run(base, "SELECT place FROM outfitter_taken WHERE segment = %s", segment).fetchone()
            return 0 if row is None else int(row[0])

    def take(self, segment: str, place: int, lines: bytes) -> None:
        """Take whole lines that begin at ``place``, and note that they are taken: both or nothing."""
        from psycopg import DataError, IntegrityError

        with self._asking() as base:
            text = "[" + lines.decode(errors="replace").rstrip("\n").replace("\n", ",") + "]"
            try:
                with _turn(base, segment, place, place + len(lines)) as is_ours:
                    if is_ours:
                        _run(base, _TAKE, text)
            except (DataError, IntegrityError):  # a line that is no record, or holds what no text here can hold
                with _turn(base, segment, place, place + len(lines)) as is_ours:
                    if is_ours:
                        _copy(base, rows_of(lines))

    def forget(self, segment: str) -> None:
        """A segment is gone."""
        with self._asking() as base:
            _run(base, "DELETE FROM outfitter_taken WHERE segment = %s", segment)

    def last(self) -> int:
        """The sequence number of the newest call; 0 when there is none."""
        with self._asking() as base:
            row = _run(base, "SELECT max(seq) FROM outfitter_calls").fetchone()
            return 0 if row is None or row[0] is None else int(row[0])

    def calls(
        self, last: int = 0, limit: int = 1000, wanted: Mapping[str, str] | None = None, *, newest_first: bool = False
    ) -> list[dict[str, Any]]:
        """Calls after a sequence number, oldest first, or before it, newest first: see ``AuditStore``."""
        place, order = place_of(last, newest_first=newest_first)
        clauses = " AND ".join([f"seq {place} %s", *(_FILTERS[name] for name in wanted or {})])
        asked = f"SELECT seq, {_NAMES} FROM outfitter_calls WHERE {clauses} ORDER BY seq {order} LIMIT %s"  # noqa: S608 - names of ours
        with self._asking() as base:
            rows = _run(base, asked, last, *(wanted or {}).values(), limit).fetchall()
        return [dict(zip(("seq", *COLUMNS), row, strict=True)) for row in rows]

    def since(self, moment: float, limit: int = 200_000) -> list[tuple[str, str, float]]:
        """Server, outcome and duration of every call that began since a moment, newest first."""
        with self._asking() as base:
            return cast("list[tuple[str, str, float]]", _run(base, _SINCE, moment, limit).fetchall())

    def timings(
        self, wanted: Mapping[str, str] | None = None, limit: int = 20_000
    ) -> list[tuple[float, float, str, str, str]]:
        """When each call began, how long it took, its outcome, agent and server: see ``AuditStore``."""
        clauses = " AND ".join(["true", *(_FILTERS[name] for name in wanted or {})])
        asked = f"SELECT {', '.join(TIMED)} FROM outfitter_calls WHERE {clauses} ORDER BY seq DESC LIMIT %s"  # noqa: S608 - names of ours
        with self._asking() as base:
            found = _run(base, asked, *(wanted or {}).values(), limit).fetchall()
        return cast("list[tuple[float, float, str, str, str]]", found)

    def remove_before(self, moment: float, most: int = 1000) -> int:
        """Remove calls that began before a moment, the oldest first; what another gateway removes now is left to it."""
        with self._asking() as base:
            return _run(base, _REMOVE, moment, most).rowcount

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    @contextmanager
    def _asking(self) -> Generator[psycopg.Connection]:
        """The connection; one that has failed is closed, and made again when it is next needed."""
        import psycopg

        try:
            yield self._connection()
        except psycopg.Error as error:
            self.close()
            raise StorageUnavailable(f"the audit database cannot be used: {self._told(error)}") from None

    def _connection(self) -> psycopg.Connection:
        if self._open is None:
            import psycopg

            # Statements are not prepared: a pooler between may hand each to another server process.
            self._open = psycopg.connect(autocommit=True, prepare_threshold=None, **self._parameters())
            if not _has_tables(self._open):
                with self._open.transaction():
                    _run(self._open, _TURN)
                    for statement in _SCHEMA:
                        _run(self._open, statement)
        return self._open

    def _parameters(self) -> dict[str, Any]:
        from psycopg.conninfo import conninfo_to_dict

        url = self.url.reveal()
        if not url.startswith(("postgresql://", "postgres://")):
            raise Invalid("OUTFITTER_DATABASE is no URL of a PostgreSQL", hint=_HINT)
        return _DEFAULTS | conninfo_to_dict(url)

    def _told(self, error: Exception) -> str:
        """What the driver says, unless a secret is in it."""
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        given = self._parameters()
        secrets = [str(given[name]) for name in ("password", "sslpassword") if given.get(name)]
        return type(error).__name__ if any(secret in said for secret in secrets) else said


@contextmanager
def _turn(base: psycopg.Connection, segment: str, place: int, end: int) -> Generator[bool]:
    """One transaction that takes a segment from ``place`` to ``end``; False when another has taken it already."""
    with base.transaction():
        _run(base, _TURN)
        noted = base.execute((_NEXT if place else _FIRST).encode(), {"segment": segment, "place": place, "end": end})
        yield noted.rowcount == 1


def _copy(base: psycopg.Connection, rows: Iterator[Row]) -> None:
    """Take rows one by one; PostgreSQL has no text with a NUL in it."""
    with base.cursor() as cursor, cursor.copy(f"COPY outfitter_calls ({_NAMES}) FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row([value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row])


def _has_tables(base: psycopg.Connection) -> bool:
    row = _run(base, "SELECT to_regclass('outfitter_calls') IS NOT NULL").fetchone()
    return row is not None and bool(row[0])


def _run(base: psycopg.Connection, statement: str, *values: object) -> psycopg.Cursor[tuple[Any, ...]]:
    """Run a statement of this module; values never stand in its text."""
    return base.execute(statement.encode(), values or None)
