"""Mistakes about eventual consistency: who may miss changes, and what a weak answer shows."""

from collections.abc import Iterator
from contextlib import contextmanager

from quorate.adts.specification import Kind
from quorate.api_specs import cluster
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.values import Done
from quorate.client_sdk.protocol.operations import observe
from quorate.quorums.choices import choice
from quorate.quorums.choices.choice import Consistency
from tests.sim.planted.plant import Planting, patched


@contextmanager
def drop_what_decisions_depend_on() -> Iterator[None]:
    """With eventual consistency decisions, too, read any one replica."""

    def is_dropped(kind: Kind, consistency: Consistency) -> bool:
        return consistency == "eventual" and kind is not Kind.BLIND

    forget = cluster._cached_choice.cache_clear
    forget()
    try:
        with patched(choice, is_dropped=is_dropped):
            yield
    finally:
        forget()


def answer_what_nobody_gave() -> Planting:
    """A weak read answers with the timestamp where there is a value."""

    def weakly_read(cache: LogCache, word: str, answered: frozenset[str]) -> Done:
        return Done(max(cache.seen, default=None), f"{word}/Ok", answered, is_weak=True)

    return patched(observe, weakly_read=weakly_read)
