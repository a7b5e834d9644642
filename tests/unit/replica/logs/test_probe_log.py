"""The probe log: when files begin and go, what a page holds, and that a broken line spoils no other."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec import UNSET

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo, from_json
from quorate.api_specs.messages import PROBE_LOG_FILE, ProbeRow
from quorate.replica.logs import probe_log as module
from quorate.replica.logs.probe_log import ProbeLog
from quorate.spark_reports.input.sources import find_source

NOON_S: Final = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
DAY_S: Final = 86_400.0


@pytest.fixture
def log(tmp_path: Path) -> ProbeLog:
    """That of r1, which keeps two days."""
    return ProbeLog(tmp_path, "r1", 2)


def row(time_s: float, replica: str = "r2") -> ProbeRow:
    return ProbeRow(replica, time_s, 1, 0.001)


def note(log: ProbeLog, *times_s: float) -> None:
    for time_s in times_s:
        log.write(time_s, [row(time_s, "r1"), row(time_s)])


def names(log: ProbeLog) -> list[str]:
    return sorted(each.name for each in log.folder.iterdir())


def pages(log: ProbeLog, from_s: float = 0.0, to_s: float = float("inf")) -> Iterator[list[ProbeRow]]:
    place = ""
    while True:
        rows, place, _ = log.page(place, from_s, to_s)
        yield list(rows)
        if not place:
            return


def read(log: ProbeLog, from_s: float = 0.0, to_s: float = float("inf")) -> list[float]:
    """The moments of all pages, each once."""
    return list(dict.fromkeys(each.time_s for own in pages(log, from_s, to_s) for each in own))


def test_lines_are_rows_as_a_prober_writes_them_for_their_owner_alone(log: ProbeLog) -> None:
    log.write(NOON_S, [row(NOON_S), ProbeRow("r3", NOON_S, 0, None)])
    (path,) = log.folder.iterdir()
    assert path.name == "probes-r1-20261101T120000Z.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == (
        f'{{"replica":"r2","time_s":{NOON_S},"up":1,"latency_s":0.001}}\n'
        f'{{"replica":"r3","time_s":{NOON_S},"up":0,"latency_s":null}}\n'
    )


def test_a_file_begins_with_a_day_and_when_the_last_is_full_and_goes_on_after_a_restart(
    log: ProbeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(log, NOON_S, NOON_S + 10)
    again = ProbeLog(log.folder, "r1", 2)
    note(again, NOON_S + 20, NOON_S + DAY_S)
    assert names(log) == ["probes-r1-20261101T120000Z.jsonl", "probes-r1-20261102T120000Z.jsonl"]
    monkeypatch.setattr(module, "PROBE_FILE_BYTES_MAX", 1)
    note(again, NOON_S + DAY_S + 10)
    assert names(log)[2:] == ["probes-r1-20261102T120010Z.jsonl"]
    assert read(log) == [NOON_S, NOON_S + 10, NOON_S + 20, NOON_S + DAY_S, NOON_S + DAY_S + 10]


def test_a_file_goes_when_all_of_it_is_too_old_and_those_of_others_stay(log: ProbeLog) -> None:
    other = log.folder / "probes-r2-20200101T000000Z.jsonl"
    other.write_text("")
    (log.folder / "notes.txt").write_text("mine")
    days = [NOON_S + number * DAY_S for number in range(4)]
    note(log, *days)
    # The file of the second day has rows of two days ago yet.
    assert read(log) == days[1:]
    note(log, days[-1] + DAY_S)
    assert read(log) == [*days[2:], days[-1] + DAY_S]
    assert {"notes.txt", other.name} < set(names(log))


def test_the_oldest_files_go_when_all_are_too_large(log: ProbeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_FILE_BYTES_MAX", 1)
    note(log, NOON_S)
    size = sum(each.stat().st_size for each in log.folder.iterdir())
    monkeypatch.setattr(module, "PROBE_LOG_BYTES_MAX", 3 * size + 1)
    times_s = [NOON_S + number for number in range(1, 8)]
    note(log, *times_s)
    assert sum(each.stat().st_size for each in log.folder.iterdir()) <= 4 * size
    assert read(log) == times_s[-4:]


def test_pages_are_bounded_and_hold_every_row_once(log: ProbeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = [NOON_S + number for number in range(40)]
    note(log, *times_s, NOON_S + DAY_S)
    monkeypatch.setattr(module, "PROBE_PAGE_BYTES_MAX", 500)
    found = list(pages(log))
    assert all(len(msgspec.json.encode(own)) <= 500 + 2 for own in found)
    assert len(found) > 10
    assert [each.time_s for own in found for each in own] == [
        each for time_s in [*times_s, NOON_S + DAY_S] for each in (time_s, time_s)
    ]


def test_a_time_leaves_out_rows_and_whole_files(log: ProbeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = [NOON_S, NOON_S + 10, NOON_S + DAY_S, NOON_S + DAY_S + 10]
    note(log, *times_s)
    assert read(log, times_s[1], times_s[3]) == times_s[1:3]
    opened: list[str] = []
    lines_from = module._lines_from

    def noted(path: Path, offset: int) -> tuple[list[bytes], int, bool]:
        opened.append(path.name)
        return lines_from(path, offset)

    monkeypatch.setattr(module, "_lines_from", noted)
    assert read(log, times_s[2]) == times_s[2:]
    assert read(log, to_s=times_s[1]) == times_s[:1]
    assert opened == names(log)[::-1]


def test_a_line_that_was_cut_off_spoils_no_later_one(log: ProbeLog) -> None:
    note(log, NOON_S)
    (path,) = log.folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    note(log, NOON_S + 10)
    assert [(each.replica, each.time_s) for own in pages(log) for each in own] == [
        ("r1", NOON_S),
        ("r1", NOON_S + 10),
        ("r2", NOON_S + 10),
    ]


def test_a_file_that_went_between_two_pages_is_passed_over(
    log: ProbeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(log, NOON_S, NOON_S + 10, NOON_S + DAY_S)
    monkeypatch.setattr(module, "PROBE_PAGE_BYTES_MAX", 100)
    _, place, _ = log.page()
    (log.folder / names(log)[0]).unlink()
    rows, _, _ = log.page(place)
    assert [(each.replica, each.time_s) for each in rows] == [("r1", NOON_S + DAY_S)]
    (path := log.folder / names(log)[0]).unlink()
    path.symlink_to("nowhere")  # As one that goes after the folder was looked at.
    assert log.page() == ([], "", [])
    path.unlink()
    assert log.page(place) == ((), "", ())


def test_a_full_disk_is_told(log: ProbeLog) -> None:
    note(log, NOON_S)
    (path,) = log.folder.iterdir()
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        note(log, NOON_S + 10)


def test_names_are_those_that_reports_know() -> None:
    found = PROBE_LOG_FILE.fullmatch("probes-r1-20261101T120000Z.jsonl")
    assert found is not None
    assert found[1] == "r1"


def document(epoch: int = 0) -> ClusterDocument:
    return ClusterDocument("shop", (ReplicaInfo("r1", "http://127.0.0.1:7001"),), epoch=epoch or UNSET)


def noted(log: ProbeLog, *moments: tuple[float, int]) -> None:
    for time_s, epoch in moments:
        log.write(time_s, [row(time_s)], document(epoch))


def epochs(log: ProbeLog, **asked: float) -> list[tuple[float, int]]:
    """When which configuration was noted, on all pages."""
    found, place = [], ""
    while True:
        page = log.page(place, **asked)
        found += [(each.time_s, from_json(each.document).number) for each in page.configurations]
        place = page.next
        if not place:
            return found


def test_a_configuration_is_noted_with_each_file_and_process_and_when_it_is_another(log: ProbeLog) -> None:
    noted(log, (NOON_S, 0), (NOON_S + 10, 0), (NOON_S + 20, 2), (NOON_S + 30, 2))
    log.write(NOON_S + 40, [row(NOON_S + 40)])
    assert epochs(log) == [(NOON_S, 0), (NOON_S + 20, 2)]
    again = ProbeLog(log.folder, "r1", 2)
    noted(again, (NOON_S + 50, 2), (NOON_S + DAY_S, 2))
    expected = [(NOON_S, 0), (NOON_S + 20, 2), (NOON_S + 50, 2), (NOON_S + DAY_S, 2)]
    assert epochs(log) == expected
    assert len(read(log)) == 7, "no line of it is a row"
    path = log.folder / "configurations-r1-20261101T120000Z.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert find_source(log.folder).files == tuple(sorted(log.folder.glob("probes-*")))


def test_a_time_has_what_was_noted_before_it_in_the_same_file(
    log: ProbeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_PAGE_BYTES_MAX", 200)
    monkeypatch.setattr(module, "_is_full", lambda _path: False)
    noted(log, *((NOON_S + number, number // 5) for number in range(15)))
    assert epochs(log) == [(NOON_S, 0), (NOON_S + 5, 1), (NOON_S + 10, 2)], "on the first page alone"
    assert epochs(log, from_s=NOON_S + 7, to_s=NOON_S + 9) == [(NOON_S, 0), (NOON_S + 5, 1)]


def test_notes_go_with_their_file_and_a_broken_one_spoils_no_other(log: ProbeLog) -> None:
    noted(log, (NOON_S, 0))
    (path,) = log.folder.glob("configurations-*")
    path.write_bytes(path.read_bytes()[:-9])
    noted(log, (NOON_S + 10, 1))
    assert epochs(log) == [(NOON_S + 10, 1)]
    noted(log, *((NOON_S + number * DAY_S, 1) for number in range(1, 5)))
    assert len(names(log)) == 2 * len(list(log.folder.glob("probes-*"))) == 6
    assert [time_s for time_s, _ in epochs(log)] == read(log)


def test_where_very_many_were_noted_another_file_begins(
    log: ProbeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_PAGE_BYTES_MAX", 1000)
    moments = [(NOON_S + number, number) for number in range(40)]
    noted(log, *moments)
    assert len(list(log.folder.glob("configurations-*"))) > 2
    assert list(dict(epochs(log)).values()) == [epoch for _, epoch in moments]
