"""A storage for huey: tasks, schedule, results and counters on the replicas. docs/how-to/huey.md shows how it is used.

Owns the step from huey's `BaseStorage` to the SDK. For the huey named N these objects are used: `queue/huey.N.tasks`, and the
dictionaries `huey.N.schedule`, `huey.N.results` and `huey.N.counters`. huey's data is bytes; it is kept as base64 text.

What each step rests on, so that several consumers may run at once:

* a task is taken from the queue by one decision, so that one worker gets it;
* a scheduled task is a key of its own, never used again; a scheduler takes it by deleting the key *if it still holds the
  task*, which one of them wins;
* a result is taken in the same way; a counter is raised by compare-and-set.

This client hands no decision over to a replica's front end: when that replica died, a task could be taken and never run.
"""

import base64
import datetime
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

try:
    from huey.api import Huey
    from huey.constants import EmptyData
    from huey.exceptions import ConfigurationError
    from huey.storage import BaseStorage
except ModuleNotFoundError as error:
    raise ImportError("huey is not installed: pip install 'quorate[huey]'") from error

from ..client_sdk import BadInput, Client, Dictionary, Queue, QuorateError, Unavailable, connect
from ..client_sdk.adapters.standard_parts import check_atomic
from ..client_sdk.api.calls import checked_name
from ..client_sdk.api.connect import DEADLINE_S, Cluster
from .result_keys import library_key

WAIT_S: Final = 1.0
FLUSH_ITEMS: Final = 100
"""Tasks that a flush takes at once."""
DOUBTFUL_MAX: Final = 1000
"""Scheduled tasks of which this process may not know whether it took them; while there are so many it takes no more."""

OBJECTS: Final = (
    ("queue", "tasks"),
    ("dictionary", "schedule"),
    ("dictionary", "results"),
    ("dictionary", "counters"),
)
"""What a storage keeps, under its prefix."""
AND: Final = "~"
"""Between the time of a scheduled task and what makes its key one that is never used again."""

_logger: Final = logging.getLogger("quorate.huey")

Key = str | bytes


class QuorateStorage(BaseStorage):  # type: ignore[misc]  # huey ships no types
    """huey's storage over a Quorate cluster.

    `cluster`, `endpoints` and `token` are those of `quorate.client_sdk.connect`; nothing is connected before the first use.
    `deadline_s`: what each operation gets, in seconds; when no quorum answers in time, it raises an error of
    `quorate.client_sdk.errors`, whose `definite` says whether it is certain that nothing happened. `wait_s`: how long a
    worker waits for a task before it looks whether it should stop; 0 makes huey poll instead.

    Task priorities are refused: the queue is first in, first out. Locks and other values with a time to live end by the
    clocks of the machines that look at them.
    """

    priority = False

    def __init__(
        self,
        name: str = "huey",
        cluster: Cluster = "",
        endpoints: Mapping[str, str] | None = None,
        token: str | None = None,
        deadline_s: float = DEADLINE_S,
        wait_s: float = WAIT_S,
    ) -> None:
        super().__init__(name)
        if not cluster:
            raise ConfigurationError(
                "QuorateHuey needs cluster=…: the path of the cluster file, or the URL of any replica"
            )
        self.blocking = wait_s > 0
        self._prefix: Final = f"huey.{name}"
        checked_name(f"{self._prefix}.schedule")
        self._cluster: Final = cluster
        self._endpoints: Final = endpoints
        self._token: Final = token
        self._deadline_s: Final = deadline_s
        self._wait_s: Final = wait_s
        self._connecting: Final = threading.Lock()
        self._client: Client | None = None
        self._doubtful: Final[dict[str, tuple[str, str]]] = {}
        """Scheduled tasks that this process may have taken: the token and the data of the attempt, by key."""
        self._scheduler: int | None = None
        """The thread that reads the schedule, and then adds what it took to the queue."""
        self._due_there = 0
        """How many of the tasks that it took it has not added yet: what it adds after these, as periodic tasks, was never in the schedule."""
        self._unqueued: Final[list[bytes]] = []
        """What that thread certainly could not add, which huey logs and forgets: it is read of the schedule again."""

    def close(self) -> bool:
        """Close the connections; the next use makes new ones, also in a forked process."""
        with self._connecting:
            client, self._client = self._client, None
        if client is not None:
            client.close()
        return client is not None

    # The queue.

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        """Add a task. An OutcomeUnknown says that it may have been added: adding it again may run it twice."""
        if priority:
            raise NotImplementedError(
                f"priority {priority}: a Quorate queue is first in, first out, so leave priorities out, "
                "or use one huey for each priority"
            )
        is_due = self._due_there > 0 and threading.get_ident() == self._scheduler
        self._due_there -= is_due
        try:
            self._tasks.enqueue(_text(data))
        except QuorateError as error:
            if error.definite and is_due:
                self._unqueued.append(data)
            raise

    def dequeue(self) -> bytes | None:
        """Take a task; None when there is none within `wait_s`. It is taken for good: huey acknowledges nothing."""
        item = self._tasks.dequeue(wait_s=self._wait_s)
        return None if item is None else _data(item)

    def queue_size(self) -> int:
        """How many tasks wait."""
        return self._tasks.size()

    def enqueued_items(self, limit: int | None = None) -> list[bytes]:
        """The tasks that wait, or the first of them, oldest first."""
        return [_data(item) for item in self._tasks.items(limit or None)]

    def flush_queue(self) -> None:
        """Drop as many tasks as wait now."""
        queue, left = self._tasks, self._tasks.size()
        while left > 0 and (dropped := queue.dequeue(max_items=min(left, FLUSH_ITEMS))):
            left -= len(dropped)

    # The schedule.

    def add_to_schedule(self, data: bytes, ts: datetime.datetime) -> None:
        """Keep a task until `ts`."""
        self._schedule.put(f"{_moment(ts)}{AND}{uuid.uuid4().hex}", _text(data))

    def read_schedule(self, ts: datetime.datetime) -> list[bytes]:
        """Take the tasks due at `ts`, the earliest first; as many as the deadline allows, the others at the next call.

        Of several schedulers that read at once, one gets each task. When replicas stop answering midway, what was taken
        until then is returned, and the rest stays.
        """
        late_s = time.monotonic() + self._deadline_s
        self._scheduler = threading.get_ident()
        taken, self._unqueued[:] = list(self._unqueued), []
        try:
            self._settle_doubtful(taken)
            for key, text in self._due(ts):
                if self._take(key, text, uuid.uuid4().hex):
                    taken.append(_data(text))
                if time.monotonic() > late_s or len(self._doubtful) >= DOUBTFUL_MAX:
                    break
        except QuorateError as error:
            if not taken:
                raise
            _logger.warning("read %d due tasks of the schedule, then: %s", len(taken), error)
        self._due_there = len(taken)
        return taken

    def schedule_size(self) -> int:
        """How many tasks are scheduled."""
        return self._schedule.size()

    def scheduled_items(self, limit: int | None = None) -> list[bytes]:
        """The scheduled tasks, or the first of them, the earliest first."""
        return [_data(text) for text in list(self._schedule.items().values())[: limit or None]]

    def flush_schedule(self) -> None:
        """Drop what is scheduled now."""
        _clear(self._schedule)

    # Results, locks, revocations.

    def put_data(self, key: Key, value: bytes, is_result: bool = False) -> None:
        """Set a value."""
        self._results.put(library_key(key), _held(key, value))

    def peek_data(self, key: Key) -> Any:
        """The value of a key, or huey's EmptyData."""
        held = self._results.get(library_key(key))
        return _data(held["data"]) if _is_there(held) else EmptyData

    def pop_data(self, key: Key) -> Any:
        """Take the value of a key, or huey's EmptyData; of several callers one gets it."""
        name = library_key(key)
        for _ in self._attempts(f"results: {name}"):
            held = self._results.get(name)
            if not _is_there(held):
                break
            if self._results.compare_and_delete(name, held):
                return _data(held["data"])
        return EmptyData

    def has_data_for_key(self, key: Key) -> bool:
        """Whether the key has a value."""
        return self.peek_data(key) is not EmptyData

    def put_if_empty(self, key: Key, value: bytes, ttl: float | None = None) -> bool:
        """Set a value unless the key has one; whether it had none. With `ttl` it is gone after so many seconds."""
        name, mine = library_key(key), _held(key, value, ttl)
        for _ in self._attempts(f"results: {name}"):
            if self._results.put_if_absent(name, mine):
                return True
            held = self._results.get(name)
            if _is_there(held):
                return False
            if held is not None and self._results.compare_and_set(name, held, mine):
                return True
        raise AssertionError("attempts end by an error")

    def result_store_size(self) -> int:
        """How many values there are."""
        return len(self.result_items())

    def result_items(self) -> dict[str, bytes]:
        """All keys and values."""
        found = self._results.items().values()
        return {held["key"]: _data(held["data"]) for held in found if _is_there(held)}

    def flush_results(self) -> None:
        """Drop all values that are there now."""
        _clear(self._results)

    # Counters.

    def incr(self, key: Key, amount: int = 1) -> int:
        """Add to a counter, which begins at 0; its new value. An OutcomeUnknown says that it may have been added."""
        name, counters = library_key(key), self._counters
        for _ in self._attempts(f"counters: {name}"):
            before = counters.get(name)
            after: int = (before or 0) + amount
            if before is None:
                is_set = amount == 0 or counters.put_if_absent(name, after)
            else:
                is_set = amount == 0 or counters.compare_and_set(name, before, after)
            if is_set:
                return after
        raise AssertionError("attempts end by an error")

    def delete_counter(self, key: Key) -> None:
        """Set a counter back to 0."""
        self._counters.delete(library_key(key))

    def flush_counters(self) -> None:
        """Drop all counters that are there now."""
        _clear(self._counters)

    # Within.

    def _connected(self) -> Client:
        with self._connecting:
            if self._client is None:
                client = connect(
                    self._cluster,
                    endpoints=self._endpoints,
                    token=self._token,
                    deadline_s=self._deadline_s,
                    forward=False,
                )
                try:
                    for adt, name in OBJECTS:
                        check_atomic(client.document, f"{adt}/{self._prefix}.{name}")
                except BadInput:
                    client.close()
                    raise
                self._client = client
            return self._client

    @property
    def _tasks(self) -> Queue:
        return self._connected().queue(f"{self._prefix}.tasks")

    @property
    def _schedule(self) -> Dictionary:
        return self._connected().dictionary(f"{self._prefix}.schedule")

    @property
    def _results(self) -> Dictionary:
        return self._connected().dictionary(f"{self._prefix}.results")

    @property
    def _counters(self) -> Dictionary:
        return self._connected().dictionary(f"{self._prefix}.counters")

    def _due(self, ts: datetime.datetime) -> list[tuple[str, str]]:
        """The keys and data of the scheduled tasks whose time has come, the earliest first."""
        now = _moment(ts)
        return [(key, text) for key, text in self._schedule.items().items() if key.partition(AND)[0] <= now]

    def _take(self, key: str, text: str, token: str) -> bool:
        """Take a scheduled task; whether this process got it.

        The token makes a repeat safe: it gets the answer of the first attempt, if that one took the task.
        """
        try:
            return self._schedule.compare_and_delete(key, text, idempotency_key=token)
        except QuorateError as error:
            if not error.definite:
                self._doubtful[key] = (token, text)
            raise

    def _settle_doubtful(self, taken: list[bytes]) -> None:
        """Find out whether the tasks were taken whose taking had an unknown outcome."""
        for key, (token, text) in list(self._doubtful.items()):
            if self._take(key, text, token):
                taken.append(_data(text))
            del self._doubtful[key]

    def _attempts(self, what: str) -> Iterator[int]:
        """Numbers from 0 until the deadline; then Unavailable, for others changed it between each look and each change."""
        late_s, number = time.monotonic() + self._deadline_s, 0
        while time.monotonic() <= late_s:
            yield number
            number += 1
        raise Unavailable(
            f"{what} was changed by others {number} times within {self._deadline_s:g} s: try again later",
            definite=True,
        )


class QuorateHuey(Huey):  # type: ignore[misc]  # huey ships no types
    """huey over a Quorate cluster: `QuorateHuey("my-app", cluster="my-cluster/cluster.toml")`; see QuorateStorage."""

    storage_class = QuorateStorage


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _data(text: str) -> bytes:
    return base64.b64decode(text)


def _moment(ts: datetime.datetime) -> str:
    """The time as text that sorts as times do. huey's times carry no zone; all of one huey are in the same one."""
    return ts.replace(tzinfo=None).isoformat(timespec="microseconds")


def _held(key: Key, data: bytes, ttl: float | None = None) -> dict[str, Any]:
    """What a key of the results holds: the key as huey names it, the data, and until when, in seconds since 1970."""
    held = {"key": key.decode() if isinstance(key, bytes) else key, "data": _text(data)}
    return held if ttl is None else held | {"until": time.time() + ttl}


def _is_there(held: Mapping[str, Any] | None) -> bool:
    return held is not None and ("until" not in held or time.time() < held["until"])


def _clear(dictionary: Dictionary) -> None:
    for key in dictionary.items():
        dictionary.delete(key)
