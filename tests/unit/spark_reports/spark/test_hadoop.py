"""Reports by URI, over the wire: Hadoop's own client for WebHDFS and a server that speaks it.

`bucket://` is the same with the capability of an object store. s3a itself is not tested: no registry that tests may use has its jar.
"""

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.period import EVERYTHING
from quorate.spark_reports.model.places import Place
from quorate.spark_reports.report import Options, make_report
from quorate.spark_reports.store.folder import ClusterFolder
from quorate.spark_reports.store.kept import read_kept
from quorate.spark_reports.store.updating import update
from tests.docs.pages import ROOT
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.store.probe_days import STEP_S, bad_rows, samples, write_lines, write_parquet
from tests.unit.spark_reports.webhdfs import WRITES, WebHdfs, install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.spark_reports.spark.hadoop import HadoopPlace

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHdfs]:
    """A server of an empty folder; tests have folders of their own in it."""
    install(spark)
    with WebHdfs(tmp_path_factory.mktemp("webhdfs")).running() as running:
        yield running


@pytest.fixture
def refusing(server: WebHdfs) -> Iterator[WebHdfs]:
    """The same, where refusals end with the test."""
    yield server
    server.refuses = lambda _name, _path: False


def place_at(spark: "SparkSession", uri: str) -> "HadoopPlace":
    from quorate.spark_reports.spark.hadoop import HadoopFiles  # noqa: PLC0415 - collecting the tests must not need it

    return HadoopFiles(spark).place(uri)


def figures(path: Place) -> dict[str, Any]:
    """Figures, but for what names the engine."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del found["versions"], found["source"]["engine"], found["source"]["name"]
    return found


def test_a_run_by_uri_gives_the_report_of_the_folder_by_uri(server: WebHdfs, tmp_path: Path) -> None:
    run = measured_run.write_run(server.root / "run", operations=60)
    measured_run.write_bad_rows(run)
    older = server.root / "out" / "parquet" / "links" / "part-0.parquet"
    older.parent.mkdir(parents=True)
    older.touch()
    made = make_report(f"{server.uri}/run", f"{server.uri}/out")
    plain = make_report(run, tmp_path, Options(engine="python"))
    assert figures(made.json) == figures(plain.json)
    page = made.html.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "--advice figures.json" in page, "commands read no URI"
    assert made.notes == (f"The commands of the report read a copy of {made.json}, where they are run.",)
    assert str(made.html) == f"{server.uri}/out/report.html"
    out = server.root / "out"
    assert {path.name for path in out.iterdir()} == {"report.html", "figures.json", "tables", "parquet"}
    assert {path.name for path in (out / "parquet").iterdir()} == {
        "operations",
        "intervals",
        "up_sets",
        "rejected",
    }
    assert {path.name for path in (out / "tables").iterdir()} == {
        path.name for path in (tmp_path / "tables").iterdir()
    }


@pytest.mark.parametrize("scheme", ["webhdfs", "bucket"])
def test_days_are_kept_by_uri(server: WebHdfs, tmp_path: Path, scheme: str) -> None:
    probes = server.root / f"{scheme}-probes"
    write_lines(probes, 0, samples(0) + bad_rows(0))
    write_parquet(probes, 1, samples(1) + bad_rows(1))
    uri = server.uri.replace("webhdfs", scheme)
    options = Options(adt="queue", store=f"{uri}/{scheme}-store", cluster="shop")
    before = len(server.asked)
    first = make_report(f"{uri}/{scheme}-probes", tmp_path / "a", Options(**vars_of(options), step_s=STEP_S))
    assert first.notes[0].startswith(f"{uri}/{scheme}-store/cluster=shop: 4 days new")
    assert ("RENAME" in {name for name, _ in server.asked[before:]}) == (scheme == "webhdfs"), (
        "an object is put"
    )
    again = make_report(f"{uri}/{scheme}-probes", tmp_path / "b", options)
    assert again.notes == (f"{uri}/{scheme}-store/cluster=shop: 0 days new, 4 kept.",)
    make_report(None, tmp_path / "c", options)
    plain = make_report(probes, tmp_path / "d", Options(engine="python", adt="queue", step_s=STEP_S))
    found, kept = (figures(each) for each in (first.json, tmp_path / "c" / "figures.json"))
    assert found == figures(plain.json)
    assert kept | {"source": found["source"]} == found


def vars_of(options: Options) -> dict[str, Any]:
    return {"adt": options.adt, "store": options.store, "cluster": options.cluster}


@pytest.mark.parametrize("scheme", ["webhdfs", "bucket"])
def test_a_run_that_ends_at_any_write_leaves_a_whole_store(
    spark: "SparkSession", refusing: WebHdfs, tmp_path: Path, scheme: str
) -> None:
    """One day is kept; the next run makes it anew and adds one, and every write from the nth on fails."""
    probes, store = tmp_path / "probes", refusing.root / f"{scheme}-cut"
    write_parquet(probes, 0, samples(0)[:9])
    folder = ClusterFolder(place_at(spark, f"{refusing.uri.replace('webhdfs', scheme)}/{scheme}-cut"), "shop")

    def take() -> None:
        with folder.written():
            update(folder, find_source(probes), STEP_S * 1_000_000, {})

    def kept() -> tuple[str, ...]:
        with folder.read():
            read_kept(folder, EVERYTHING, None, {"r1": 1, "r2": 1, "r3": 1})
            found = folder.manifest()
        assert found is not None
        return tuple(day.digest for day in found.days.values())

    take()
    former = kept()
    shutil.copytree(store, tmp_path / "former")
    write_parquet(probes, 0, samples(0)[:12])
    write_parquet(probes, 1, samples(1)[:9])
    states, allowed, ended = [], 0, False
    while not ended:
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "former", store)
        left = allowed
        allowed += 1

        def refuses(name: str, _path: str) -> bool:
            nonlocal left
            left -= name in WRITES
            return left < 0 and name in WRITES

        refusing.refuses = refuses
        try:
            take()
            ended = True
        except (ReportError, OSError):
            states.append(kept())
    latest = kept()
    assert len(latest) > len(former)
    assert states == sorted(states, key=lambda each: each == latest)
    assert {*states} == {former, latest}, "one that ends while it takes files away has kept all"
    refusing.refuses = lambda _name, _path: False
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "former", store)
    take()
    assert kept() == latest


def test_a_place_does_what_a_path_does(spark: "SparkSession", server: WebHdfs) -> None:
    path = server.root / "places"
    for name in ("a b.txt", "100% [x]* a+b.csv", "sub=1/ü.txt", "sub=1/deep/c.txt", "in/sub=2/d.txt"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(f"{name}\r\n".encode() * 3)
    place = place_at(spark, f"{server.uri}/places/")
    assert str(place) == f"{server.uri}/places"
    for root in (place_at(spark, server.uri), place_at(spark, f"{server.uri}/"), place.parent):
        assert (str(root), root / "places") == (f"{server.uri}/", place)
        assert place in root.iterdir()

    def names(found: Iterator[Any], root: Any) -> list[str]:
        return sorted(each.relative_to(root).as_posix() for each in found)

    assert names(place.iterdir(), place) == names(path.iterdir(), path)
    for pattern in ("*.txt", "*=1", "none", "sub=*/*.txt"):
        assert names(place.glob(pattern), place) == names(path.glob(pattern), path)
    files = [each for each in path.rglob("*") if each.is_file()]
    assert names(place.rglob("*"), place) == names(iter(files), path)
    for file in files:
        own = place / file.relative_to(path).as_posix()
        assert own == place.at(own.path) != place
        assert (own.name, own.stem, own.suffix) == (file.name, file.stem, file.suffix)
        assert (own.exists(), own.is_file(), own.is_dir()) == (True, True, False), server.asked[-1]
        assert (own.read_bytes(), own.read_text("utf-8")) == (file.read_bytes(), file.read_text("utf-8"))
        assert own.stat().st_size == file.stat().st_size
        assert abs(own.stat().st_mtime_ns - file.stat().st_mtime_ns) < 1_000_000
    assert sorted([place / "b", place / "a"]) == [place / "a", place / "b"]
    with (place / "a b.txt").open("rb") as opened:
        opened.seek(-3, io.SEEK_END)
        assert (opened.read(), opened.read(1), opened.seek(2), opened.read(3)) == (b"t\r\n", b"", 2, b"b.t")
    for lacking in (place / "none", path / "none"):
        assert (lacking.exists(), lacking.is_file(), lacking.is_dir()) == (False, False, False)
        assert [*lacking.rglob("*"), *lacking.glob("*")] == []
        for act in (lacking.read_bytes, lacking.stat, lacking.unlink):
            with pytest.raises(FileNotFoundError, match="none"):
                act()
        lacking.unlink(missing_ok=True)
    (place / "sub=1").rename(place / "moved")
    assert not (path / "sub=1").exists()
    with pytest.raises(OSError, match="cannot be renamed to"):
        (place / "a b.txt").rename(place / "100% [x]* a+b.csv")
    place.files.remove(place)
    assert not path.exists()


@pytest.mark.parametrize("uri", ["s3a://bucket/probes", "nosuch://host/probes"])
def test_a_scheme_without_its_package_is_an_error_that_says_how_to_get_it(
    spark: "SparkSession", uri: str, tmp_path: Path
) -> None:
    sentence = (
        rf"^{uri} cannot be used .*--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:[0-9.]+, and"
    )
    with pytest.raises(ReportError, match=sentence) as caught:
        make_report(uri, tmp_path)
    package = re.search(r"--conf (spark.jars.packages=\S+),", str(caught.value))
    assert package is not None
    assert f"--conf {package[1]} " in (ROOT / "docs/how-to/daily-reports.md").read_text(encoding="utf-8")


def test_a_file_system_that_refuses_is_an_error_that_names_it(refusing: WebHdfs, tmp_path: Path) -> None:
    refusing.refuses = lambda _name, _path: True
    with pytest.raises(
        ReportError,
        match=rf"^{refusing.uri}/run cannot be used \(AccessControlException: refused\); see that",
    ):
        make_report(f"{refusing.uri}/run", tmp_path)
    settings = Options(store=f"{refusing.uri}/days", cluster="shop", conf={"spark.hadoop.fs.x": "1"})
    with pytest.raises(ReportError, match=r"a Spark session runs already, too late for --conf spark\.hadoop"):
        make_report(None, tmp_path, settings)
