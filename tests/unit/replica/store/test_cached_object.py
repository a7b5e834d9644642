"""What a store remembers of objects is bounded: in objects, timestamps and bytes."""

import pytest

from quorate.adts.log import Entry
from quorate.replica.store import cached_object
from quorate.replica.store.cached_object import CachedObject, ObjectCache
from quorate.timestamps.timestamp import ZERO, make


def filled(*sizes: int) -> ObjectCache:
    cache = ObjectCache()
    for place, size in enumerate(sizes):
        cache.put(f"o{place}", CachedObject(place + 1, None, ZERO, size=size))
    return cache


def names(cache: ObjectCache) -> list[str]:
    return [name for name in ("o0", "o1", "o2", "o3", "o4") if cache.get(name) is not None]


def test_too_many_bytes_go_down_to_half_and_what_was_used_last_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_object, "BYTES_CACHED_MAX", 100)
    cache = filled(30, 30, 30, 10)
    assert not cache.is_full
    cache.get("o0")
    cache.put("o4", CachedObject(5, None, ZERO, size=10))
    assert cache.is_full
    cache.shrink()
    assert names(cache) == ["o0", "o3", "o4"]
    assert not cache.is_full


def test_a_state_that_grows_is_counted_anew_and_one_that_goes_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cached_object, "BYTES_CACHED_MAX", 100)
    cache = filled(10, 10)
    first = cache.get("o0")
    assert first is not None
    cache.weigh(first, 95)
    assert cache.is_full
    cache.pop("o0")
    assert not cache.is_full
    cache.put("o2", CachedObject(3, None, ZERO, size=90))
    assert not cache.is_full


def test_one_alone_that_is_larger_than_all_may_be_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_object, "BYTES_CACHED_MAX", 100)
    cache = filled(10, 500)
    cache.shrink()
    assert names(cache) == ["o1"]


def test_timestamps_are_bounded_over_all_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_object, "TIMESTAMPS_CACHED_MAX", 4)
    cache = filled(0, 0)
    for name, count in (("o0", 3), ("o1", 2)):
        here = cache.get(name)
        assert here is not None
        for number in range(count):
            cache.add(here, [Entry("e", make(number + 1, 0, "a"))])
    assert cache.is_full
    cache.shrink()
    assert names(cache) == ["o1"]


def test_what_is_taken_out_is_not_found_though_it_was_used_last() -> None:
    cache = filled(0, 0)
    assert cache.get("o1") is not None
    cache.pop("o1")
    assert cache.get("o1") is None
    assert cache.get("o0") is not None
    cache.clear()
    assert cache.get("o0") is None
