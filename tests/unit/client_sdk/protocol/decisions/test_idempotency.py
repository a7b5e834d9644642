"""How a summary remembers idempotency keys."""

from quorate.client_sdk.protocol.decisions.idempotency import DIGEST_CHARS, decision_id, digest


def test_a_key_is_remembered_for_one_kind_of_operation_and_no_key_not_at_all() -> None:
    assert decision_id("Deq", "k") != decision_id("Enq", "k")
    assert decision_id("Deq", "") == ""


def test_digests_tell_arguments_apart_and_are_short() -> None:
    digests = {digest("1"), digest("1", "2"), digest("12"), digest(None), digest(None, None)}
    assert len(digests) == 5
    assert {len(each) for each in digests} == {DIGEST_CHARS}
    assert digest("1", "2") == digest("1", "2")
