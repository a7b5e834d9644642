"""Any requests to the replica machine, in any order: what it promised it keeps."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quorate.adts.log import Summary
from quorate.api_specs.messages import Accept, Collect, Commit, Window
from quorate.replica.protocol.log import ObjectState
from quorate.timestamps.timestamp import Timestamp
from tests.unit.replica.protocol.test_acceptor import NAME, Replica, at, ballot, entry

TIMES = st.integers(0, 6)


class Promises(RuleBasedStateMachine):
    """Any requests in any order: promises only rise, and what was stored is shown until a *committed* horizon passes it."""

    def __init__(self) -> None:
        super().__init__()
        self.replica = Replica(page=3)
        self.before = ObjectState(NAME)
        self.stored: set[Timestamp] = set()

    @rule(us=TIMES)
    def append(self, us: int) -> None:
        fence = self.before.fence
        (is_stored,) = self.replica.append(entry(us))
        assert is_stored == (at(us) in self.stored or at(us) > fence)
        if is_stored:
            self.stored.add(at(us))

    @rule(term=st.none() | TIMES, fence=TIMES, fence_next=st.integers(0, 3))
    def collect(self, term: int | None, fence: int, fence_next: int) -> None:
        request = Collect(
            NAME, None if term is None else ballot(term, 0), at(fence), fence_next, Window(limit=3)
        )
        reply = self.replica.ask(request)
        assert reply.refused == (term is not None and at(term) < self.before.promised)
        if reply.refused:
            assert self.replica.store.state(NAME) in (None, self.before)
        else:
            assert reply.status.fence >= at(fence)

    @rule(term=TIMES, step=st.integers(1, 3), horizon=TIMES)
    def accept(self, term: int, step: int, horizon: int) -> None:
        reply = self.replica.ask(Accept(NAME, ballot(term, step), Summary(at(horizon))))
        is_low = at(term) < self.before.promised or ballot(term, step) < self.before.accepted
        assert reply.refused == is_low

    @rule(term=TIMES, horizon=TIMES, has_summary=st.booleans())
    def commit(self, term: int, horizon: int, has_summary: bool) -> None:
        summary = Summary(at(horizon)) if has_summary else None
        self.replica.ask(Commit(NAME, ballot(term, 3), at(horizon), summary))

    @rule()
    def crash(self) -> None:
        self.replica.store.crash()

    @invariant()
    def promises_only_rise(self) -> None:
        state = self.replica.store.state(NAME) or ObjectState(NAME)
        for field in ("fence", "promised", "accepted", "committed", "horizon", "collected"):
            assert getattr(state, field) >= getattr(self.before, field), field
        assert state.promised >= self.before.promised
        self.before = state

    @invariant()
    def nothing_above_the_committed_horizon_is_lost(self) -> None:
        rows = {row.entry.t for row in self.replica.store.rows(NAME, self.before.collected, 100)}
        assert rows == {t for t in self.stored if t > self.before.collected}
        assert self.before.collected <= self.before.horizon


Promises.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestPromises = Promises.TestCase
