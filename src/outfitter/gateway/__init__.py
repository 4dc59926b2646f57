"""Where every call is enforced: one MCP endpoint per agent, with its servers, tools, headers and rules."""

from outfitter.gateway.answering import Listener, answering, bind_loopback
from outfitter.gateway.budgets import Accounts, LedgerAccounts
from outfitter.gateway.desk import Desk
from outfitter.gateway.fast.guarded import Welcome
from outfitter.gateway.gate import ADMIN, Gate, Page, is_served, is_welcome
from outfitter.gateway.governing import Governing
from outfitter.gateway.http_front import HttpFront
from outfitter.gateway.limits import Limits, Turnstile
from outfitter.gateway.metrics import Metrics
from outfitter.gateway.opening import Watch, open_desk
from outfitter.gateway.pins import Pins, held_back
from outfitter.gateway.recorder import Recorder, open_recorder
from outfitter.gateway.records import CallRecord, digest_of
from outfitter.gateway.relaying import Passed, Relay
from outfitter.gateway.seats import RunSeats, Seat
from outfitter.gateway.serving import Address, holding, serving
from outfitter.gateway.stdio_front import StdioFront
from outfitter.gateway.steps.recording import Keeping
from outfitter.gateway.tokens import TokenBook, TokenRecord, TokenSource, new_token, token_digest

__all__ = [
    "ADMIN",
    "Accounts",
    "Address",
    "CallRecord",
    "Desk",
    "Gate",
    "Governing",
    "HttpFront",
    "Keeping",
    "LedgerAccounts",
    "Limits",
    "Listener",
    "Metrics",
    "Page",
    "Passed",
    "Pins",
    "Recorder",
    "Relay",
    "RunSeats",
    "Seat",
    "StdioFront",
    "TokenBook",
    "TokenRecord",
    "TokenSource",
    "Turnstile",
    "Watch",
    "Welcome",
    "answering",
    "bind_loopback",
    "digest_of",
    "held_back",
    "holding",
    "is_served",
    "is_welcome",
    "new_token",
    "open_desk",
    "open_recorder",
    "serving",
    "token_digest",
]
