"""Measured availability against quorum choices, on Spark, written as self-contained reports.

Owns the traces, their aggregates and the pages made of them. Must not know the protocol: it reads quorum choices
from `quorate.quorums` and recorded measurements, and talks to no replica.

    places          what a report asks of a path, be it of this machine or a URI; files reads and writes them, spark.hadoop those of Hadoop
    sources         what lies at a place: a run, probes, a trace, an answer of Prometheus; sizes estimates how much it holds
    contract        the words of a run on disk, and why rows are kept aside; run_document reads run.json
    period          the time whose rows count; days and objectives: what each day took of an error budget
    store           what probes of each day come to, kept: updating takes days in, kept reads them; manifest, changes, folder
    session         a quiet, offline Spark session, here or on a cluster, and the Java it needs
    probes          how long a prober's sample speaks: edges of parts, merged; probe_jobs finds those of many, probe_files reads them
    engine          counts operations with jobs, outcome_jobs and rollups, reads probes with probe_jobs  ┐ both fill the
    loading         reads with rows, probe_rows, foreign; reference counts operations in plain Python     ┘ tables of
    trace           joint up-sets and outages, for both engines; probing compares a prober with the truth   aggregates
    seen_outages    outages as operations saw them, from stretches of time that are joined
    quorum_choices  what was run, and every other valid choice; questions is what is asked of the trace
    derive          aggregates to figures, with models, confidence, derive_operations, derive_choices, derive_adaptive, derive_objectives
    advice          what figures.json recommends, read back; text.advice has the commands that apply it
    keys            what every figure means; figure_tables writes them as Parquet, frames reads these as data frames (load)
    page            figures to HTML: sentences (wording…), tables (tables…), charts (charts…, svg), templates
    merging         samples of several observers, as one prober would have written them
    report          all of it: make_report

    >>> from pathlib import Path
    >>> from quorate.spark_reports.report import make_report
    >>> make_report(Path("out/run"), Path("out/report"))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .figures.frames import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """`load`, imported on first use: to import a module of this room brings no other one along."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .figures.frames import load  # noqa: PLC0415

    return load
