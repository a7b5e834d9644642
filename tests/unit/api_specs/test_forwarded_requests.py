"""What types cannot say of a forwarded request is checked before a front end sees it."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Leased, Value
from quorate.adts.types.catalogue import SPECIFICATIONS
from quorate.api_specs.checking import ID_CHARS_MAX, LEASE_TOKEN_CHARS_MAX, BadBatch, check_forwarded
from quorate.api_specs.commands import (
    AcquireCommand,
    CompareAndSetCommand,
    DequeueCommand,
    PeekCommand,
    SettleCommand,
)
from quorate.api_specs.limits import (
    DEFAULTS,
    DELIVERIES_MAX,
    FORWARD_S_MAX,
    FORWARDED_COMMANDS_MAX,
    LEASE_S_MAX,
    REPLY_BODIES_MAX,
    SETTLE_TOKENS_MAX,
    Limits,
)
from quorate.api_specs.messages import ForwardedReply, ForwardedRequest, Granted
from quorate.timestamps.timestamp import INFINITY, make

AT = make(1, 0, "c")
GOOD = ForwardedRequest(
    "c",
    AT,
    "queue/q",
    "i1",
    (DequeueCommand(10), PeekCommand(), AcquireCommand(3, 1000), SettleCommand("release", ("1/x",), 5)),
    0.5,
)
SWAP = ForwardedRequest("c", AT, "register/r", "i1", (CompareAndSetCommand(None, Value("1")),), FORWARD_S_MAX)
GREETING = ForwardedRequest("c", AT, "queue/q")


@pytest.mark.parametrize("ask", [GOOD, SWAP, GREETING], ids=["queue", "cell", "greeting"])
def test_what_a_front_end_asks_passes(ask: ForwardedRequest) -> None:
    check_forwarded(ask, DEFAULTS, SPECIFICATIONS)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"object": "queue/../x"}, "object: must be TYPE/NAME"),
        ({"id": "now"}, "'now' is not a timestamp"),
        ({"id": INFINITY}, "can only bound a window"),
        ({"incarnation": ""}, "id: must be 1 to"),
        ({"deadline_s": 0.0}, "deadline_s: must be above 0"),
        ({"deadline_s": float("nan")}, "deadline_s: must be above 0"),
        ({"deadline_s": FORWARD_S_MAX * 1.01}, f"at most {FORWARD_S_MAX}"),
        (
            {"commands": (PeekCommand(),) * (FORWARDED_COMMANDS_MAX + 1)},
            f"commands: {FORWARDED_COMMANDS_MAX + 1} of them",
        ),
        ({"commands": (DequeueCommand(0),)}, "items_max: must be 1 to"),
        ({"commands": (DequeueCommand(DEFAULTS.batch_items_max + 1),)}, "items_max: must be 1 to"),
        ({"commands": (DequeueCommand(1, "Deq k"),)}, "decide it where it was called"),
        ({"commands": (AcquireCommand(0, 1),)}, "items_max: must be 1 to"),
        ({"commands": (AcquireCommand(1, 0),)}, "lease_us: must be above 0"),
        ({"commands": (AcquireCommand(1, int(LEASE_S_MAX * 1e6) + 1),)}, "lease_us: must be above 0"),
        ({"commands": (AcquireCommand(1, 1, -1),)}, "deliveries_max: must be 0 to"),
        ({"commands": (AcquireCommand(1, 1, 0, "x" * 65),)}, "holder: must be at most 64"),
        ({"commands": (SettleCommand("accept", ("1/é",)),)}, "printable ASCII"),
        ({"commands": (SettleCommand("accept", ("1" * (LEASE_TOKEN_CHARS_MAX + 1),)),)}, "id: must be 1 to"),
        (
            {"commands": (SettleCommand("accept", ("1/x",) * (SETTLE_TOKENS_MAX + 1)),)},
            "at most 1024 are allowed",
        ),
        ({"commands": (SettleCommand("release", ("1/x",), -1),)}, "span_us: must be 0"),
        ({"object": "register/r", "commands": (SettleCommand("accept", ("1/x",)),)}, "swap is for registers"),
        ({"commands": (CompareAndSetCommand(None, None),)}, "all others for queues"),
        ({"object": "register/r"}, "swap is for registers"),
        (
            {"object": "register/r", "commands": (CompareAndSetCommand(None, Value("{")),)},
            "the value is not JSON text",
        ),
        (
            {"object": "register/r", "commands": (CompareAndSetCommand(None, None, key="k"),)},
            "decide it where it was called",
        ),
    ],
    ids=str,
)
def test_a_forwarded_request_out_of_form_or_bounds_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadBatch, match=r"^forwarded request: ") as caught:
        check_forwarded(replace(GOOD, **change), DEFAULTS, (*SPECIFICATIONS, "cart"))
    assert sentence in str(caught.value)


def test_the_longest_token_that_a_lease_may_have_passes() -> None:
    """An item with the longest id was delivered again and again: nobody could acknowledge it."""
    longest = Leased(Entry("i" * ID_CHARS_MAX, AT, Value("1")), deliveries=DELIVERIES_MAX).token
    assert len(longest) == LEASE_TOKEN_CHARS_MAX
    check_forwarded(replace(GOOD, commands=(SettleCommand("accept", (longest,)),)), DEFAULTS, SPECIFICATIONS)


@pytest.mark.parametrize("body_bytes_max", [2**16, 2**18])
def test_all_that_a_forwarded_request_grants_fits_in_one_reply(body_bytes_max: int) -> None:
    """Where items are small, their ids and timestamps are most of it."""
    quarter = body_bytes_max // 4
    limits = Limits(body_bytes_max=body_bytes_max, value_bytes_max=quarter, page_bytes_max=quarter)
    at = make(2**40, 2**10, "0123456789abc")
    most = Granted(limits.batch_items_max * (Entry(at, at, Value("1")),))
    served = ForwardedReply("r1", "i1", limits.forwarded_commands_max * (most,))
    assert len(msgspec.msgpack.encode(served)) < REPLY_BODIES_MAX * body_bytes_max
    assert 1 < limits.forwarded_commands_max < FORWARDED_COMMANDS_MAX == DEFAULTS.forwarded_commands_max
    assert Limits(body_bytes_max=1000, value_bytes_max=500, page_bytes_max=10**9).forwarded_commands_max == 1
