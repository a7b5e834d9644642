"""The handles of the asyncio client: queues, registers and dictionaries. `quorate.client_sdk.api.blocking` makes the others of them.

Owns the methods: the operation that each runs, and what a history is told of it. Must not know how operations are run.
"""

import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar, overload

from msgspec import Struct
from msgspec.structs import asdict

from ...adts.keys import by_key, name_key
from ...adts.log import Value, count_leases
from ...api_specs.cluster import ClusterDocument
from ...api_specs.values import from_value, text_bytes, to_value
from ..errors import BadInput
from ..protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Enqueue,
    Items,
    Listed,
    Peek,
    PutIfAbsent,
    QueueSize,
    Read,
    ReadLeases,
    Write,
)
from . import consuming, lease_calls
from .calls import (
    NULL,
    UNBOUNDED,
    Call,
    Told,
    check_taking,
    check_whole,
    checked_key,
    checked_key_name,
    checked_prefix_name,
    checked_value,
    decoded,
    first,
    full_name,
    nothing,
    number,
    single,
    some_or_null,
    spans,
)
from .leases import DeadLetter, Delivery, Lease, LeaseCounts, dead_letter_of

Result = TypeVar("Result")


class Performer(Protocol):
    """What runs the calls of handles: a client."""

    @property
    def document(self) -> ClusterDocument:
        """That of its cluster."""

    async def perform(self, call: Call[Result], deadline_s: float | None = None) -> Result:
        """Run one call."""

    @property
    def loops(self) -> consuming.Opening:
        """What begins loops over its queues."""


class _Handle:
    """A named object of a cluster."""

    _type: ClassVar[str]

    def __init__(self, client: Performer, name: str) -> None:
        self._full: Final = full_name(self._type, name)
        self.name: Final = name
        self._loops: Final = client.loops
        self._perform: Final = client.perform
        self._limits: Final = client.document.limits
        self._cluster: Final = client.document.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self._cluster!r}>"


class AsyncQueue(_Handle):
    """A first-in-first-out queue."""

    _type = "queue"

    async def enqueue(
        self,
        value: Any,
        *,
        delay_s: float = 0,
        expires_s: float | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Add a value (anything JSON) at the end. A repeat with the same key adds it once.

        `acquire` (and it alone) delivers it after `delay_s` seconds at the earliest, and not after `expires_s`.
        """
        await self.enqueue_many(
            [value],
            delay_s=delay_s,
            expires_s=expires_s,
            deadline_s=deadline_s,
            idempotency_key=idempotency_key,
        )

    async def enqueue_many(
        self,
        values: Iterable[Any],
        *,
        delay_s: float = 0,
        expires_s: float | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Add values at the end, in order, at the cost of one; items of others may come between them. Else as `enqueue`."""
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise BadInput(f"enqueue_many takes several values, not a {type(values).__name__}: pass a list")
        times = spans(delay_s, expires_s)
        texts = self._texts(list(values))
        operation = Enqueue(self._full, texts, checked_key(idempotency_key), times)
        told = tuple(Told("enqueue", self._full, value=text) for text in texts)
        if texts:
            await self._perform(Call(operation, told, nothing, lambda _: [NULL] * len(texts)), deadline_s)

    def _texts(self, values: Sequence[Any]) -> tuple[Value, ...]:
        """The values of one enqueue as JSON text."""
        most = self._limits.batch_items_max
        if len(values) > most:
            raise BadInput(f"{len(values)} values at once: at most {most} (batch_items_max) are allowed")
        texts = tuple(checked_value(value, self._limits) for value in values)
        if text_bytes("".join(texts)) * 2 > self._limits.body_bytes_max and len(texts) > 1:
            raise BadInput("the values are too long for one message: enqueue fewer at once")
        return texts

    @overload
    async def dequeue(
        self,
        max_items: None = None,
        wait_s: float = 0,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any: ...

    @overload
    async def dequeue(
        self,
        max_items: int,
        wait_s: float = 0,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> list[Any]: ...

    async def dequeue(
        self,
        max_items: int | None = None,
        wait_s: float = 0,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Take the value at the front, None when there is none; with `max_items`, a list of up to so many.

        Waits up to `wait_s` seconds for a first value. A repeat with the same key gets what the first took. Where (without a
        key) an asyncio caller is cancelled, or a signal's handler raises while a blocking one waits, what is taken nevertheless
        is given to this client's next dequeue of the queue. It is gone when the client is closed before, or when the handler
        raises just as the blocking call returns: use `acquire` where that must not be.
        """
        most = 1 if max_items is None else max_items
        check_taking(most, wait_s, self._limits)
        call: Call[Any] = Call(
            Dequeue(self._full, most, wait_s, checked_key(idempotency_key)),
            (Told("dequeue", self._full),) * most,
            first if max_items is None else lambda values: [from_value(each) for each in values],
            some_or_null,
            wait_s,
        )
        return await self._perform(call, deadline_s)

    async def peek(self, *, deadline_s: float | None = None) -> Any:
        """The value at the front, which stays; None when there is none."""
        return await self._perform(single(Told("peek", self._full), Peek(self._full), first), deadline_s)

    async def items(self, max_items: int | None = None, *, deadline_s: float | None = None) -> list[Any]:
        """The values that wait, or the first `max_items` of them, oldest first; all stay. What is added meanwhile may
        still come between them: only what is taken, or peeked at, has its final place.
        """
        if max_items is not None:
            check_whole("max_items", max_items)
            if max_items < 1:
                raise BadInput(f"max_items is {max_items}: use 1 or more, or leave it out for all")
        counting = QueueSize(self._full, sys.maxsize if max_items is None else max_items)
        call = single(
            Told("size", self._full),
            counting,
            lambda info: [from_value(each) for each in info.first],
            lambda info: number(info.size),
        )
        return await self._perform(call, deadline_s)

    async def size(self, *, deadline_s: float | None = None) -> int:
        """How many items wait."""
        call: Call[int] = single(Told("size", self._full), QueueSize(self._full), lambda info: info.size)
        return await self._perform(call, deadline_s)

    async def acquire(
        self,
        max_items: int = 1,
        lease_s: float = lease_calls.LEASE_S,
        wait_s: float = 0,
        *,
        max_deliveries: int | None = None,
        deadline_s: float | None = None,
    ) -> list[Lease]:
        """Lease up to `max_items` items for `lease_s` seconds each; waits up to `wait_s` for a first one.

        Items whose lease is over, and those given back, come before those at the front. What was delivered
        `max_deliveries` times becomes a dead letter. Where the outcome is unknown, or an asyncio caller is cancelled, what was
        taken comes back by itself, once its lease is over.
        """
        call = lease_calls.acquire(self._full, max_items, lease_s, wait_s, max_deliveries, self._limits)
        return await self._perform(call, deadline_s)

    def consume(
        self,
        prefetch: int = consuming.PREFETCH,
        lease_s: float = lease_calls.LEASE_S,
        wait_s: float | None = None,
        *,
        max_deliveries: int | None = None,
        patience_s: float = consuming.PATIENCE_S,
    ) -> AsyncGenerator[Delivery, None]:
        """Loop over the items, one by one, for good, or until none has come for `wait_s` seconds and all are done with.

        Up to `prefetch` items are held at a time, under leases that are renewed: those that wait, and those that you have and
        have not yet acknowledged, released or rejected (see Delivery). Say so of each: while all are yours, the loop waits.

        However the loop is left, the replicas are told what you have said, and all else goes back, which counts as a delivery.
        It takes a call or two, and ten seconds at most. `contextlib.closing` and `aclosing` wait for it. So does closing the client.
        After `break` alone it happens when Python drops the loop: at once, or soon with asyncio.

        Unavailable, OutcomeUnknown and LimitReached are raised when calls have come to nothing for `patience_s` seconds, and
        LeaseLost when an acknowledgement came too late. No item is lost by that: consume again.
        """
        options = consuming.Options(prefetch, lease_s, wait_s, max_deliveries, patience_s)
        consuming.check(options, self._limits)
        return consuming.deliveries(lambda: self._loops.open(self._full, options, self._limits))

    async def ack(self, *leases: Lease | str, deadline_s: float | None = None) -> None:
        """Acknowledge the items: they are done with. LeaseLost names leases that are not the caller's any more; the other items are
        acknowledged. A repeat is answered as the first."""
        await self._perform(lease_calls.settle(self._full, "ack", leases, nothing), deadline_s)

    async def release(
        self, *leases: Lease | str, delay_s: float = 0, deadline_s: float | None = None
    ) -> None:
        """Give the items back: they are delivered again, after `delay_s` seconds."""
        delay_s = spans(delay_s, None).delay_s
        await self._perform(lease_calls.settle(self._full, "release", leases, nothing, delay_s), deadline_s)

    async def reject(
        self, *leases: Lease | str, dead_letter: bool = True, deadline_s: float | None = None
    ) -> None:
        """The items are not to be delivered again: they become dead letters, or (`dead_letter` False) are dropped."""
        call = lease_calls.settle(self._full, "reject" if dead_letter else "drop", leases, nothing)
        await self._perform(call, deadline_s)

    async def renew(
        self, *leases: Lease | str, lease_s: float = lease_calls.LEASE_S, deadline_s: float | None = None
    ) -> float:
        """Let the leases last `lease_s` seconds from now; the new deadline (seconds since 1970)."""
        lease_s = lease_calls.checked_lease(lease_s)
        call = lease_calls.settle(
            self._full, "renew", leases, lambda settled: settled.until_us / 1e6, lease_s
        )
        return await self._perform(call, deadline_s)

    async def leases(self, *, deadline_s: float | None = None) -> LeaseCounts:
        """How many items are delivered, wait to be delivered again or for the first time, and are dead letters."""
        call = single(
            Told("leases", self._full),
            ReadLeases(self._full),
            lambda book: count_leases(book.leases, book.dead),
            lambda book: number(len(book.leases)),
        )
        return await self._perform(call, deadline_s)

    async def dead_letters(self, *, deadline_s: float | None = None) -> list[DeadLetter]:
        """The dead letters, oldest first."""
        call = single(
            Told("dead_letters", self._full),
            ReadLeases(self._full),
            lambda book: [dead_letter_of(dead) for dead in book.dead],
            lambda book: number(len(book.dead)),
        )
        return await self._perform(call, deadline_s)

    async def requeue_dead_letters(
        self, letters: Sequence[DeadLetter | str] | None = None, *, deadline_s: float | None = None
    ) -> int:
        """Have dead letters (or their ids; left out: all) delivered again, without an expiry and with a fresh count towards
        a maximum; how many that were."""
        return await self._perform(lease_calls.clear_dead(self._full, letters, is_requeued=True), deadline_s)

    async def purge_dead_letters(
        self, letters: Sequence[DeadLetter | str] | None = None, *, deadline_s: float | None = None
    ) -> int:
        """Delete dead letters (or their ids; left out: all); how many that were."""
        return await self._perform(lease_calls.clear_dead(self._full, letters, is_requeued=False), deadline_s)

    async def purge_delayed(self, *, due_after_s: float = 0, deadline_s: float | None = None) -> int:
        """Delete the items that wait until they are due (`leases().waiting`), in `due_after_s` seconds or later; how many that were.

        An item that no acquire has met yet is not among them.
        """
        return await self._perform(lease_calls.purge_delayed(self._full, due_after_s), deadline_s)


class _Cells(_Handle):
    """What registers have in common with the keys of dictionaries. `key` is the name of one; None for a register."""

    def _cell(self, key: str | None) -> str:
        return self._full if key is None else f"{self._full}/{key}"

    async def _read(self, f: str, key: str | None, deadline_s: float | None) -> Any:
        call = single(Told(f, self._full, key), Read(self._cell(key)), decoded)
        return await self._perform(call, deadline_s)

    async def _write(self, f: str, key: str | None, text: Value | None, deadline_s: float | None) -> None:
        call = single(Told(f, self._full, key, text or NULL), Write(self._cell(key), text), nothing)
        await self._perform(call, deadline_s)

    async def _swap(
        self,
        key: str | None,
        old: Any,
        new: Value | None,
        idempotency_key: str | None,
        deadline_s: float | None,
    ) -> bool:
        before = checked_value(old, self._limits)
        operation = CompareAndSet(self._cell(key), before, new, checked_key(idempotency_key))
        told = Told("cas", self._full, key, Value(f"[{before},{new or NULL}]"))
        return await self._perform(single(told, operation, bool), deadline_s)


class AsyncRegister(_Cells):
    """One value; None until somebody writes it."""

    _type = "register"

    async def read(self, *, deadline_s: float | None = None) -> Any:
        """The value."""
        return await self._read("read", None, deadline_s)

    async def write(self, value: Any, *, deadline_s: float | None = None) -> None:
        """Set the value (anything JSON)."""
        await self._write("write", None, checked_value(value, self._limits), deadline_s)

    async def compare_and_set(
        self, old: Any, new: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Set `new` if the value is `old` (None before the first write; 1 is 1.0); whether it was."""
        after = checked_value(new, self._limits)
        return await self._swap(None, old, after, idempotency_key, deadline_s)


class Page(Struct, frozen=True):
    """Some of a dictionary: the values of keys in their order, and the key after which the next page begins; empty where this is the last one."""

    items: dict[str, Any]
    next: str


class AsyncDictionary(_Cells):
    """Keys (any text) and values (anything JSON). A key whose value is null is there; `get` gives None for both.

    A key may have 200 characters of A-Z a-z 0-9 . _ ~ @ = : + - and others count three for each byte of UTF-8. It is taken as
    it is: `é` as one character and as two are two keys. Half a surrogate pair and the empty text are no keys. Keys are in the
    order of the names under which they are kept (docs/how-to/use-from-python.md).
    """

    _type = "dictionary"

    async def get(self, key: str, *, deadline_s: float | None = None) -> Any:
        """The value of a key; None when it is absent."""
        return await self._read("get", checked_key_name(key), deadline_s)

    async def put(self, key: str, value: Any, *, deadline_s: float | None = None) -> None:
        """Set the value of a key."""
        await self._write("put", checked_key_name(key), checked_value(value, self._limits), deadline_s)

    async def delete(self, key: str, *, deadline_s: float | None = None) -> None:
        """Remove a key; it need not be there."""
        await self._write("delete", checked_key_name(key), None, deadline_s)

    async def put_if_absent(
        self, key: str, value: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Set the value of a key if it is absent; whether it was."""
        text, name = checked_value(value, self._limits), checked_key_name(key)
        operation = PutIfAbsent(self._cell(name), text, checked_key(idempotency_key))
        told = Told("put_if_absent", self._full, name, text)
        return await self._perform(single(told, operation, bool), deadline_s)

    async def compare_and_set(
        self,
        key: str,
        old: Any,
        new: Any,
        *,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> bool:
        """Set `new` if the key's value is `old` (None: absent, or null; 1 is 1.0); whether it was. `new` None sets null."""
        after = checked_value(new, self._limits)
        return await self._swap(checked_key_name(key), old, after, idempotency_key, deadline_s)

    async def compare_and_delete(
        self, key: str, old: Any, *, deadline_s: float | None = None, idempotency_key: str | None = None
    ) -> bool:
        """Remove a key if its value is `old` (anything but None); whether it was: of several callers, one hears True."""
        if old is None:
            raise BadInput(
                "compare_and_delete needs a value: null stands for an absent key as well, so use delete"
            )
        return await self._swap(checked_key_name(key), old, None, idempotency_key, deadline_s)

    async def items(self, prefix: str = "", *, deadline_s: float | None = None) -> dict[str, Any]:
        """All keys and values, or those of the keys that begin with `prefix`, in the order of the keys, as they were at one moment."""
        operation = Items(self._full, checked_prefix_name(prefix))

        def result(found: Listed) -> dict[str, Any]:
            return _written(found, prefix)

        def results(found: Listed) -> Sequence[Value]:
            return [to_value(_kept(found), UNBOUNDED)]

        return await self._perform(single(_told("items", operation), operation, result, results), deadline_s)

    async def page(
        self,
        prefix: str = "",
        *,
        after: str = "",
        max_keys: int | None = None,
        deadline_s: float | None = None,
    ) -> Page:
        """The first keys in order, of those that begin with `prefix` and come after `after`, with their values, as they were at one moment.

        A page holds `max_keys` keys at most (`page_entries_max` at most, which is 2,000, and what is meant where it is left out). It holds fewer, or none,
        where keys were deleted lately or values are large: go on until its `next` is empty. The next page is of a later moment.

            >>> page = dictionary.page("shop.")  # doctest: +SKIP
            >>> while page.next:  # doctest: +SKIP
            ...     page = dictionary.page("shop.", after=page.next)
        """
        most = self._limits.page_entries_max if max_keys is None else max_keys
        check_whole("max_keys", most)
        if not 1 <= most <= self._limits.page_entries_max:
            raise BadInput(f"max_keys is {most}: use 1 to {self._limits.page_entries_max} (page_entries_max)")
        behind = "" if after == "" else checked_key_name(after, "key `after`")
        operation = Items(self._full, checked_prefix_name(prefix), behind, most)

        def result(found: Listed) -> Page:
            return Page(_written(found, prefix), name_key(found.next))

        def results(found: Listed) -> Sequence[Value]:
            return [to_value(asdict(Page(_kept(found), found.next)), UNBOUNDED)]

        return await self._perform(single(_told("page", operation), operation, result, results), deadline_s)

    async def size(self, prefix: str = "", *, deadline_s: float | None = None) -> int:
        """How many keys, or keys that begin with `prefix`, there were at one moment."""
        operation = Items(self._full, checked_prefix_name(prefix))

        def results(found: Listed) -> Sequence[Value]:
            return number(len(found.items))

        call = single(
            _told("size", operation), operation, lambda found: len(by_key(found.items, prefix)), results
        )
        return await self._perform(call, deadline_s)


def _kept(found: Listed) -> dict[str, Any]:
    """As a history tells it: by names."""
    return {name: from_value(value) for name, value in found.items.items()}


def _written(found: Listed, prefix: str) -> dict[str, Any]:
    return {key: from_value(value) for key, value in by_key(found.items, prefix).items()}


def _told(f: str, listing: Items) -> Told:
    """A listing with a prefix or of a page says so, as a list of both."""
    is_whole = not (listing.prefix or listing.after or listing.most)
    part = NULL if is_whole else to_value([listing.prefix, listing.after], UNBOUNDED)
    return Told(f, listing.object, None, part)
