"""Measured availability against quorum choices, on Spark, written as self-contained reports.

Owns the traces, their aggregates and the pages made of them. Must not know the protocol: it reads quorum choices
from `quorate.quorums` and recorded measurements, and talks to no replica.

    contract     what a measured run looks like on disk, and why rows are kept aside
    session      a quiet, offline Spark session, and the Java it needs
    jobs         operations to small aggregates, on Spark       ┐
    trace_jobs   up and down intervals to joint up-sets         ├ engine runs them in order
    reference    the same in plain Python                       ┘ both fill the tables of `aggregates`
    derive       aggregates to `figures`, with `confidence`
    page         figures to HTML: sentences (`wording…`), tables (`tables…`), charts (`charts…`, `svg`), templates
    report       all of it: make_report

    >>> from pathlib import Path
    >>> from quorate.spark_reports.report import make_report
    >>> make_report(Path("out/run"), Path("out/report"))  # doctest: +SKIP
"""
