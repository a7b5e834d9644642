"""When a request is sent again: not before its replica's answers usually come, and not after ever longer waits."""

import pytest

from quorate.client_sdk.protocol.core.answer_times import ANSWER_S_MAX, HEDGE_S, RESEND_S_FIRST, AnswerTimes


def test_quick_answers_do_not_hasten_a_repeat() -> None:
    times = AnswerTimes()
    assert times.resend_s("r1") == RESEND_S_FIRST
    for _ in range(100):
        times.note("r1", 0.001)
    assert times.resend_s("r1") == RESEND_S_FIRST


def test_a_repeat_waits_for_answers_that_take_long_and_no_longer_once_they_do_not() -> None:
    times = AnswerTimes()
    for _ in range(100):
        times.note("r1", 0.6)
    assert times.resend_s("r1") == pytest.approx(0.6, rel=0.01)
    assert times.resend_s("r2") == RESEND_S_FIRST, "of another replica nothing is known"
    for _ in range(100):
        times.note("r1", 0.001)
    assert times.resend_s("r1") == RESEND_S_FIRST


def test_where_answers_scatter_a_repeat_waits_for_nearly_all_of_them() -> None:
    times = AnswerTimes()
    for turn in range(200):
        times.note("r1", 0.2 if turn % 2 else 0.4)
    assert 0.4 < times.resend_s("r1") < 0.8


def test_no_answer_makes_a_repeat_wait_for_ever() -> None:
    times = AnswerTimes()
    times.note("r1", 3600.0)
    assert times.resend_s("r1") == ANSWER_S_MAX


def test_others_are_asked_when_nearly_all_answers_would_have_come_within_bounds() -> None:
    times = AnswerTimes()
    assert times.hedge_s(["r1"]) == HEDGE_S[0]
    for turn in range(200):
        times.note("r1", 0.001)
        times.note("r2", 0.05 if turn % 2 else 0.06)
        times.note("r3", 1.0)
    assert times.hedge_s(["r1"]) == HEDGE_S[0]
    assert 0.06 < times.hedge_s(["r1", "r2"]) < 0.1
    assert times.hedge_s(["r1", "r3"]) == HEDGE_S[1]
