"""What the plain reference makes of times at which nothing is known, and of moments without length."""

from pathlib import Path

from quorate.adts.types.catalogue import known_types
from quorate.spark_reports.input.sources import find_source
from quorate.spark_reports.model import questions
from quorate.spark_reports.model.run_document import read_run
from quorate.spark_reports.reference import loading, reference
from tests.unit.spark_reports import measured_run

START = int(measured_run.START_S)
INTERVALS = f"""\
replica,start_s,end_s,up
r1,{START - 5},{START + 10},1
r1,{START + 10},{START + 10},0
r1,{START + 10},{START + 30},1
r2,{START},{START + 4},0
r2,{START + 4},{START + 9},0
r2,{START + 12},{START + 60},0
r3,{START + 1},{START + 29},1
r3,{START + 100},{START + 101},0
"""


def test_gaps_and_moments_without_length_are_no_outages(tmp_path: Path) -> None:
    folder = measured_run.write_run(tmp_path / "run", operations=100, duration_s=30)
    (folder / "replicas.csv").write_text(INTERVALS, encoding="utf-8")
    run = read_run(folder / "run.json")
    loaded = loading.load(find_source(folder), run, None)
    asked = questions.ask(run.choices, {}, run.votes, loaded.attempted, {}, known_types())
    found = reference.aggregate(loaded, asked, 1_000_000)
    r1, r2, r3 = found.replicas
    assert r1.observed_us == 30_000_000, "what lies before the window does not count"
    assert (r2.observed_us, r2.outages, r2.longest_outage_us) == (27_000_000, 2, 18_000_000)
    assert (r3.observed_us, r3.failures) == (28_000_000, 0)
    assert [row for row in found.starts if row.up is None], "some operations lie outside the known time"
