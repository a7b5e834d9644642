"""A consumer of queues under leases: takes items ahead, renews their leases, and tells the replicas what became of them.

Owns two threads and the calls to replicas. One takes items while there is room: it looks at each queue in turn, and where it
finds nothing it pauses, twice as long each time up to `polling_s`. The other renews leases when a third of their time has
passed, and tells endings, several at once, again and again until the replicas answer. What is told to nobody, for the process
was killed, comes back to the queue when its lease is over. What is held and counted is `quorate.integrations.custody`'s.

In a forked child nothing is given back or told: the leases are the parent's.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ..client_sdk import Lease, LeaseLost, LimitReached, Queue, QuorateError
from .broker_address import Address
from .custody import Custody, Ending, Held

PAUSE_S_FIRST: Final = 0.005
PAUSE_S_TROUBLE: Final = 2.0
"""The longest pause after the replicas gave no answer."""
CLOSE_S: Final = 15.0
"""What closing may take: to tell the replicas what is still to be told."""
RENEWALS: Final = 3
"""A lease is renewed when one part of so many has passed. Another one is for taking more (see `Custody.room`), the last for
clocks, and for this process to be late."""

AT_ONCE_MAX: Final = 100
"""Messages that one call takes, ends or renews."""

_logger: Final = logging.getLogger("quorate.kombu")


class Leaseholder:
    """Holds items of any number of queues. `on_ready` is called in a thread of its own for each item that arrives."""

    def __init__(
        self, address: Address, queue_of: Callable[[str], Queue], on_ready: Callable[[], None]
    ) -> None:
        self._address: Final = address
        self._queue_of: Final = queue_of
        self._on_ready: Final = on_ready
        self._pid: Final = os.getpid()
        self._custody: Final = Custody(address.lease_s / RENEWALS)
        self._call_s: Final = min(address.deadline_s, address.lease_s / RENEWALS)
        """The deadline of a call: one that comes to nothing must leave the other leases time."""
        self._silent: set[str] = set()
        """Queues that the last endings could not be told of: they come last."""
        self._unrenewed: set[str] = set()
        """The same of renewals."""
        self._unserved: Final[set[str]] = set()
        """Queues of which the last attempt to take came to nothing."""
        self._is_given_up = False
        self._changed: Final = threading.Condition()
        self._fetcher: Final = threading.Thread(target=self._fetch, name="quorate-fetch", daemon=True)
        self._keeper: Final = threading.Thread(target=self._keep, name="quorate-keep", daemon=True)
        self._fetcher.start()
        self._keeper.start()

    # For the caller.

    def set_most(self, most: int) -> None:
        """Hold at most so many items at a time (0: HELD_MAX of them)."""
        with self._changed:
            self._custody.set_most(most)
            self._changed.notify_all()

    def watch(self, queue: str) -> None:
        """Take items from this queue too."""
        with self._changed:
            self._custody.watch(queue)
            self._changed.notify_all()

    def unwatch(self, queue: str) -> None:
        """Take no more from this queue; items that wait to be delivered go back."""
        if self._is_here():
            with self._changed:
                self._custody.unwatch(queue)
                self._changed.notify_all()

    def next_ready(self) -> Held | None:
        """An item that arrived, if there is one."""
        with self._changed:
            return self._custody.next_ready()

    def get(self, queue: str) -> Held | None:
        """Take one item now, beyond what is taken ahead; None when there is none. Raises the errors of the SDK."""
        leases = self._acquire(queue, 1)
        with self._changed:
            return self._custody.keep(queue, leases[0], time.monotonic()) if leases else None

    def end(self, tag: str, ending: Ending) -> None:
        """The caller is done with an item. The replicas hear of it soon; this does not wait for them."""
        if not self._is_here():
            return
        with self._changed:
            if not self._custody.end(tag, ending):
                _logger.debug("%s of %s, which is not held any more", ending.value, tag)
            self._changed.notify_all()

    def release_all(self) -> None:
        """Give back all that is held."""
        if self._is_here():
            with self._changed:
                self._custody.release_all()
                self._changed.notify_all()

    def close(self) -> None:
        """Tell the replicas what is to be told, and give back the rest; within CLOSE_S. Again is harmless."""
        if not self._is_here():
            return
        late_s = time.monotonic() + CLOSE_S
        with self._changed:
            self._custody.is_closed = True
            self._custody.release_all()
            self._changed.notify_all()
        self._fetcher.join(CLOSE_S)
        self._keeper.join(max(0.0, late_s - time.monotonic()))
        with self._changed:
            self._is_given_up = True
            untold = self._custody.untold
        if untold:
            _logger.warning(
                "closed before the replicas heard what became of %d messages: they are delivered again, at the latest %g s "
                "from now",
                untold,
                self._address.lease_s,
            )

    def _is_here(self) -> bool:
        """Whether this is the process that has the threads. In a forked child the lock, too, may be held for ever."""
        return self._pid == os.getpid()

    # The thread that takes.

    def _fetch(self) -> None:
        pause_s = PAUSE_S_FIRST
        while self._has_room(pause_s):
            match self._look():
                case None:
                    pause_s = min(2 * pause_s, PAUSE_S_TROUBLE)
                case True:
                    pause_s = PAUSE_S_FIRST
                case False:
                    pause_s = min(2 * pause_s, self._address.polling_s)

    def _has_room(self, pause_s: float) -> bool:
        """Pause, and wait until there is room; whether it goes on after that."""
        with self._changed:
            self._changed.wait_for(lambda: self._custody.is_closed, pause_s)
            while not self._custody.is_closed and not self._custody.room(time.monotonic()):
                self._changed.wait(1.0)
            return not self._custody.is_closed

    def _look(self) -> bool | None:
        """Take what there is room for from each queue in turn; whether there was anything, None when one could not be asked."""
        found: list[bool | None] = []
        with self._changed:
            queues = self._custody.next_queues()
        for queue in queues:
            with self._changed:
                room = self._custody.room(time.monotonic(), queue)
            if room:
                found.append(_attempt(partial(self._take, queue, room), "cannot take messages", queue))
                self._note(queue, is_served=found[-1] is not None)
        return True if True in found else None if None in found else False

    def _note(self, queue: str, *, is_served: bool) -> None:
        """Whoever reads of trouble in a log shall read of its end, too."""
        if not is_served:
            self._unserved.add(queue)
        elif queue in self._unserved:
            self._unserved.discard(queue)
            _logger.info("queue %s: messages are taken again", queue)

    def _take(self, queue: str, most: int) -> bool:
        leases = self._acquire(queue, most)
        with self._changed:
            ready = self._custody.took(queue, leases, time.monotonic())
            self._changed.notify_all()
        for _ in range(ready):
            self._on_ready()
        return bool(leases)

    def _acquire(self, queue: str, most: int) -> list[Lease]:
        address = self._address
        return self._queue_of(queue).acquire(
            min(most, AT_ONCE_MAX),
            address.lease_s,
            max_deliveries=address.max_deliveries,
            deadline_s=self._call_s,
        )

    # The thread that renews and tells.

    def _keep(self) -> None:
        pause_s = 0.0
        while self._has_to_tell(pause_s):
            is_heard = [self._tell(), self._renew()]
            pause_s = 0.0 if all(is_heard) else min(2 * pause_s + PAUSE_S_FIRST, PAUSE_S_TROUBLE)

    def _has_to_tell(self, pause_s: float) -> bool:
        """Pause, and wait until there is something to do; False when there will not be any more."""
        look_s = self._address.lease_s / RENEWALS / 2
        with self._changed:
            if pause_s:
                self._changed.wait_for(lambda: self._custody.is_closed, pause_s)
            if not self._custody.is_closed:
                self._changed.wait_for(lambda: self._custody.is_closed or self._custody.has_endings, look_s)
            is_more_to_come = not self._custody.is_closed or self._fetcher.is_alive()
            return not self._is_given_up and (is_more_to_come or self._custody.has_endings)

    def _tell(self) -> bool:
        """Tell what is to be told; whether all of it was heard. A queue without a quorum keeps no other one's waiting."""
        with self._changed:
            endings = self._custody.take_endings()
        silent: set[str] = set()
        for queue, ending in sorted(endings, key=lambda each: each[0] in self._silent):
            items = endings[queue, ending]
            end = partial(self._end, queue, ending, items)
            if queue not in silent and not _attempt(
                end, "cannot tell the replicas what became of messages", queue
            ):
                silent.add(queue)
            with self._changed:
                if queue in silent:
                    self._custody.tell_again(queue, ending, items)
                else:
                    self._custody.told(items)
                self._changed.notify_all()
        self._silent = silent
        return not silent

    def _end(self, queue: str, ending: Ending, items: Sequence[Held]) -> bool:
        """Tell how these ended. After an error all are told again: what was told before is answered as it was then."""
        for some in _parts(items):
            try:
                _tell_of(self._queue_of(queue), ending, [held.lease for held in some], self._call_s)
            except LeaseLost as error:
                _warn_lost(queue, len(error.lost))
        return True

    def _renew(self) -> bool:
        """Renew what is due; whether all of it was. A queue without a quorum keeps no other one's waiting."""
        with self._changed:
            due = self._custody.to_renew(time.monotonic())
        silent = {
            queue
            for queue in sorted(due, key=lambda each: each in self._unrenewed)
            if not _attempt(partial(self._renew_all, queue, due[queue]), "cannot renew leases", queue)
        }
        self._unrenewed = silent
        return not silent

    def _renew_all(self, queue: str, items: Sequence[Held]) -> bool:
        for some in _parts(items):
            self._renew_some(queue, some)
        return True

    def _renew_some(self, queue: str, items: Sequence[Held]) -> None:
        began_s, lost = time.monotonic(), frozenset[str]()
        leases = (held.lease for held in items)
        try:
            self._queue_of(queue).renew(*leases, lease_s=self._address.lease_s, deadline_s=self._call_s)
        except LeaseLost as error:
            lost = frozenset(error.lost)
        with self._changed:
            self._custody.renewed(items, began_s)
            was_held = self._custody.lost([held for held in items if held.lease.token in lost])
            self._changed.notify_all()
        if was_held:
            _warn_lost(queue, was_held)


def _parts(items: Sequence[Held]) -> Iterator[Sequence[Held]]:
    """As many as one call ends or renews."""
    return (items[start : start + AT_ONCE_MAX] for start in range(0, len(items), AT_ONCE_MAX))


def _tell_of(queue: Queue, ending: Ending, leases: Sequence[Lease], deadline_s: float) -> None:
    match ending:
        case Ending.ACK:
            queue.ack(*leases, deadline_s=deadline_s)
        case Ending.RELEASE:
            queue.release(*leases, deadline_s=deadline_s)
        case Ending.REJECT:
            _reject(queue, leases, deadline_s)


def _reject(queue: Queue, leases: Sequence[Lease], deadline_s: float) -> None:
    """Make them dead letters; where there is no room for so many, drop them, as brokers do."""
    try:
        queue.reject(*leases, deadline_s=deadline_s)
    except LimitReached as error:
        queue.reject(*leases, dead_letter=False, deadline_s=deadline_s)
        _logger.error("queue %s: dropped %d rejected messages: %s", queue.name, len(leases), error)


def _attempt(step: Callable[[], bool], what: str, queue: str) -> bool | None:
    """What the step answers; None when it came to nothing."""
    try:
        return step()
    except QuorateError as error:
        _logger.warning("queue %s: %s, trying again: %s", queue, what, error)
    except Exception:  # The border of its thread, which must go on: it renews the leases of all queues.
        _logger.exception("queue %s: %s, trying again", queue, what)
    return None


def _warn_lost(queue: str, count: int) -> None:
    _logger.warning(
        "queue %s: the leases of %d messages were over before they were acknowledged or renewed, and others were given them: "
        "what they ask for may be done twice",
        queue,
        count,
    )
