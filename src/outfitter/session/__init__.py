"""What an agent remembers: typed slices of state and log, events that change them, transactions that undo them."""

from outfitter.session.dispatcher import Dispatcher, DispatchResult, InProcessDispatcher, InProcessEventBus
from outfitter.session.reducers import append_all, replace_latest, upsert_by
from outfitter.session.session import Session, Slice
from outfitter.session.store import SlicePolicy, Snapshot, Transaction

__all__ = [
    "DispatchResult",
    "Dispatcher",
    "InProcessDispatcher",
    "InProcessEventBus",
    "Session",
    "Slice",
    "SlicePolicy",
    "Snapshot",
    "Transaction",
    "append_all",
    "replace_latest",
    "upsert_by",
]
