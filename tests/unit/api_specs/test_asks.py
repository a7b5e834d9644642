"""What types cannot say of an ask is checked before a front end sees it."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.checking import BadBatch, check_ask
from quorate.api_specs.limits import (
    ASK_S_MAX,
    ASK_WISHES_MAX,
    DEFAULTS,
    LEASE_S_MAX,
    REPLY_BODIES_MAX,
    TEND_TOKENS_MAX,
    Limits,
)
from quorate.api_specs.messages import Ask, Granted, Served
from quorate.api_specs.wishes import Front, Lend, Swap, Take, Tend
from quorate.timestamps.timestamp import INFINITY, make

AT = make(1, 0, "c")
GOOD = Ask("c", AT, "queue/q", "i1", (Take(10), Front(), Lend(3, 1000), Tend("release", ("1/x",), 5)), 0.5)
SWAP = Ask("c", AT, "register/r", "i1", (Swap(None, Value("1")),), ASK_S_MAX)
GREETING = Ask("c", AT, "queue/q")


@pytest.mark.parametrize("ask", [GOOD, SWAP, GREETING], ids=["queue", "cell", "greeting"])
def test_what_a_front_end_asks_passes(ask: Ask) -> None:
    check_ask(ask, DEFAULTS)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"object": "queue/../x"}, "object: must be TYPE/NAME"),
        ({"id": "now"}, "'now' is not a timestamp"),
        ({"id": INFINITY}, "can only bound a window"),
        ({"incarnation": ""}, "id: must be 1 to"),
        ({"deadline_s": 0.0}, "deadline_s: must be above 0"),
        ({"deadline_s": float("nan")}, "deadline_s: must be above 0"),
        ({"deadline_s": ASK_S_MAX * 1.01}, f"at most {ASK_S_MAX}"),
        ({"wishes": (Front(),) * (ASK_WISHES_MAX + 1)}, f"wishes: {ASK_WISHES_MAX + 1} of them"),
        ({"wishes": (Take(0),)}, "items_max: must be 1 to"),
        ({"wishes": (Take(DEFAULTS.batch_items_max + 1),)}, "items_max: must be 1 to"),
        ({"wishes": (Take(1, "Deq k"),)}, "decide it where it was called"),
        ({"wishes": (Lend(0, 1),)}, "items_max: must be 1 to"),
        ({"wishes": (Lend(1, 0),)}, "lease_us: must be above 0"),
        ({"wishes": (Lend(1, int(LEASE_S_MAX * 1e6) + 1),)}, "lease_us: must be above 0"),
        ({"wishes": (Lend(1, 1, -1),)}, "deliveries_max: must be 0 to"),
        ({"wishes": (Tend("accept", ("1/é",)),)}, "printable ASCII"),
        ({"wishes": (Tend("accept", ("1/x",) * (TEND_TOKENS_MAX + 1)),)}, "at most 1024 are allowed"),
        ({"wishes": (Tend("release", ("1/x",), -1),)}, "span_us: must be 0"),
        ({"object": "register/r", "wishes": (Tend("accept", ("1/x",)),)}, "swap is for registers"),
        ({"wishes": (Swap(None, None),)}, "all others for queues"),
        ({"object": "register/r"}, "swap is for registers"),
        ({"object": "register/r", "wishes": (Swap(None, Value("{")),)}, "the value is not JSON text"),
        ({"object": "register/r", "wishes": (Swap(None, None, key="k"),)}, "decide it where it was called"),
    ],
    ids=str,
)
def test_an_ask_out_of_form_or_bounds_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadBatch, match=r"^ask: ") as caught:
        check_ask(replace(GOOD, **change), DEFAULTS)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("body_bytes_max", [2**16, 2**18])
def test_all_that_an_ask_grants_fits_in_one_reply(body_bytes_max: int) -> None:
    """Where items are small, their ids and timestamps are most of it."""
    quarter = body_bytes_max // 4
    limits = Limits(body_bytes_max=body_bytes_max, value_bytes_max=quarter, page_bytes_max=quarter)
    at = make(2**40, 2**10, "0123456789abc")
    most = Granted(limits.batch_items_max * (Entry(at, at, Value("1")),))
    served = Served("r1", "i1", limits.ask_wishes_max * (most,))
    assert len(msgspec.msgpack.encode(served)) < REPLY_BODIES_MAX * body_bytes_max
    assert 1 < limits.ask_wishes_max < ASK_WISHES_MAX == DEFAULTS.ask_wishes_max
    assert Limits(body_bytes_max=1000, value_bytes_max=500, page_bytes_max=10**9).ask_wishes_max == 1
