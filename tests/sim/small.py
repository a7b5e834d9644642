"""Bounds of front ends, of forwarding, and of calls that wait to be run, that are so small that short worlds meet them: what is known is trimmed and
forgotten, logs are cut off and read page by page, batches are parted, summaries drop the oldest terms, forwarded requests are forgotten, replicas that
are away given up.

With the bounds of the product a world of some hundred operations meets hardly any of them.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from quorate.api_specs import limits
from quorate.client_sdk.protocol.core import log_cache, log_caches
from quorate.client_sdk.protocol.decisions import (
    own_transitions,
    pending,
    proposer,
    read_window,
    summary_builder,
)
from quorate.client_sdk.protocol.operations import observe, own_calls, queue_looks
from quorate.replica.protocol import at_most_once, catch_up
from quorate.timestamps import clock_bound

_BOUNDS: Final[tuple[tuple[Any, dict[str, int]], ...]] = (
    (read_window, {"WINDOW_MIN": 2, "CACHED_MIN": 2, "CELL_ROWS": 2, "ASIDE_MAX": 4}),
    (log_cache, {"OWN_MAX": 3}),
    (log_caches, {"OBJECTS_MAX": 2, "BYTES_MAX": 3000}),
    (pending, {"COMMANDS_MAX": 3}),
    (proposer, {"COMMANDS_MAX": 3}),
    (own_transitions, {"FOLDED_MAX": 2}),
    (summary_builder, {"TERMS_MAX": 12, "TERMS_KEPT": 6}),
    (queue_looks, {"PAGE_ENTRIES": 2, "ENTRIES_AT_ONCE": 2}),
    (observe, {"CELL_ROWS": 2, "PAGE_OBJECTS": 2, "KEYS_AT_ONCE": 2}),
    (own_calls, {"LOOK_ENTRIES": 1, "FOLD_SHARE": 0}),
    (limits, {"WAITING_BYTES_MAX": 250}),
    (at_most_once, {"IDS_MAX": 3, "SENDERS_MAX": 1}),
    (clock_bound, {"AWAY_S": 0}),
    (catch_up, {"WAITING_MAX": 2}),
)


@contextmanager
def small_bounds() -> Iterator[None]:
    """Meanwhile they are small."""
    with ExitStack() as stack:
        for module, bounds in _BOUNDS:
            for name, small in bounds.items():
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, small)
        yield
