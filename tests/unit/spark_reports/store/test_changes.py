"""Which days are to be made, and how changes are told."""

from quorate.spark_reports.store.changes import Changes, Lessened, WantedDay, file_gone, files_of, wanted_days
from quorate.spark_reports.store.manifest import Facts, InputFile, KeptDay, Manifest

MANIFEST = Manifest("shop", 1)


def file(content: str, *days: str) -> InputFile:
    return InputFile(1, 1, content, days)


def test_a_day_is_made_of_all_files_that_have_rows_of_it() -> None:
    files = {"b": file("2", "2026-11-02", "2026-11-01"), "a": file("1", "2026-11-01"), "c": file("3")}
    wanted = wanted_days(MANIFEST, files)
    assert list(wanted) == ["2026-11-01", "2026-11-02"]
    assert wanted["2026-11-01"] == WantedDay(MANIFEST.digest({"a": files["a"], "b": files["b"]}), ("a", "b"))
    assert wanted["2026-11-02"].files == ("b",)


def test_a_day_loses_no_rows_for_want_of_a_file() -> None:
    kept = KeptDay("", "", ("a", "b"), Facts(10))
    assert file_gone(kept, 9, {"b", "c"}) == "a"
    assert file_gone(kept, 10, {"b", "c"}) is None, "what it held is in another file"
    assert file_gone(kept, 9, {"a", "b"}) is None, "its files have fewer rows by now"
    assert file_gone(None, 0, set()) is None


def test_files_that_are_gone_stay_named_while_a_day_is_kept_of_them() -> None:
    before = Manifest("shop", 1, files={"a": file("1"), "b": file("2"), "c": file("3")})
    days = {"2026-11-01": KeptDay("", "", ("a", "b"), Facts())}
    assert files_of(days, before, {"b": file("new")}) == {"a": file("1"), "b": file("new")}


def told(**changes: object) -> list[str]:
    nothing: dict[str, list[object]] = {
        "new": [],
        "repeated": [],
        "emptied": [],
        "kept": [],
        "vanished": [],
        "lessened": [],
        "unsettled": [],
    }
    return list(Changes(**(nothing | changes)).sentences("here"))  # type: ignore[arg-type]


def test_days_that_follow_each_other_are_told_as_a_stretch() -> None:
    assert told() == ["here: 0 days new, 0 kept."]
    new = ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-03"]
    assert told(new=new, repeated=["2026-01-01"], kept=["2026-01-01"]) == [
        "here: 4 days new (2026-02-27 to 2026-03-01, 2026-03-03), 1 repeated, as their input changed (2026-01-01), 1 kept."
    ]
    assert told(emptied=["2026-01-01"]) == [
        "here: 0 days new, 1 without any row by now (2026-01-01), 0 kept."
    ]
    apart = [f"2026-01-{day:02}" for day in range(1, 20, 2)]
    assert told(vanished=apart)[1] == (
        "The input no longer has any file of 10 kept days (2026-01-01, 2026-01-03, 2026-01-05, 2026-01-07, 2026-01-09, 5 more)."
    )


def test_days_that_stay_as_they_were_name_the_file_that_is_gone() -> None:
    lessened = [Lessened(f"2026-01-0{day}", "probes/x.parquet", 3, 1000) for day in range(1, 8)]
    _, *sentences = told(lessened=lessened)
    assert sentences[0] == (
        "2026-01-01 stays as it was kept, with 1,000 rows: probes/x.parquet is gone from the input, which has 3 rows of that day "
        "left. Bring the file back to have the day made anew."
    )
    assert len(sentences) == 6
    assert sentences[-1] == "So do 2 days more."


def test_files_that_changed_meanwhile_are_named() -> None:
    assert told(unsettled=["b", "a"])[1] == (
        "2 files of the input changed while being read (b, a): days with rows there wait for a later run."
    )
