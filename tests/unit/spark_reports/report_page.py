"""docs/how-to/report.md, whose tables are made from the code: `python -m tests.unit.spark_reports.report_page > docs/how-to/report.md`."""

from itertools import groupby

from quorate.spark_reports.figures.keys import KEYS
from quorate.spark_reports.input import probes
from quorate.spark_reports.model import contract

INTRODUCTION = """# Reports

`quorate report` says what each quorum choice gave, or would have given, while replicas failed as they really did, and how
far two predictions are right: from the replicas' joint up-sets, and as if replicas failed independently.

| `--input` | what that is |
| --- | --- |
| `out/week` | a measured run, as `quorate measure` leaves it ([measuring.md](measuring.md)) |
| `up.json` | a saved answer of Prometheus, or a folder of them; with `--type queue`, or another type |
| `up.csv` | a trace, in the formats of [quorums.md](quorums.md#availability); with `--type` |
| `probes/` | a prober's samples alone; with `--type` |

It writes `report.html`, `figures.json`, the same figures as Parquet (`tables/`), and the rows kept aside
(`parquet/rejected`); on Spark also the cleaned rows and joint up-sets.

## From Prometheus

Save the answer of a range query of `up`, for the targets that keep the object:

<!-- run by: tests/system/deployment/test_prometheus.py -->
```sh
curl -G http://prometheus:9090/api/v1/query_range --data-urlencode 'query=up{job="quorate"}' \\
    -d start=2026-11-01T00:00:00Z -d end=2026-11-08T00:00:00Z -d step=60 > up.json
```

A very short one, of two replicas:

<!-- run: file up.json -->
```json
{"status": "success", "data": {"resultType": "matrix", "result": [
    {"metric": {"instance": "a:8000"}, "values": [[0, "1"], [60, "1"], [120, "0"], [180, "1"], [240, "1"]]},
    {"metric": {"instance": "b:8000"}, "values": [[0, "1"], [60, "1"], [120, "1"], [180, "1"], [240, "1"]]}
]}}
```

<!-- run: sh -->
```sh
quorate report --input up.json --type queue --mix Enq=1,Deq=1 --out out/report
```

`examples/up.json` is a longer one, of five replicas. The command prints the answer, too:

<!-- run: sh -->
```sh
quorate report --input examples/up.json --type queue --mix Enq=1,Deq=1 --out out/example
```

<!-- output: part -->
```text
 quorum choice                           Enq       Deq   of the mix
 ──────────────────────────────────────────────────────────────────
 Enq (0, 1), Deq (5, 1)                100 %   48.80 %      74.40 %
 Enq (0, 2), Deq (4, 2)              95.51 %   63.17 %      79.34 %
 Enq (0, 3), Deq (3, 3)              82.63 %   82.63 %      82.63 %
 Enq (0, 4), Deq (2, 4)              63.17 %   63.17 %      63.17 %
 Enq (0, 5), Deq (1, 5)              48.80 %   48.80 %      48.80 %
 read/write Enq (3, 3), Deq (3, 3)   82.63 %   82.63 %      82.63 %

Most of this mix is served by Enq (0, 3), Deq (3, 3): 82.63 %.
```

Prometheus answers with at most 11,000 samples of a series; a folder of several answers, of the same series and step, is one
time. `--label` names the label that tells replicas apart (`instance`). `--votes` gives the replicas votes, and leaves out
those that it does not name. A sample speaks for the time until the next one if that comes within one and a half steps,
otherwise for one step: a gap is unknown, and left out of every figure. The step is the samples' median distance, or `--step`.

## Engines

Nothing need be chosen. **Spark is not the default for small inputs.** Up to 200,000 rows of a run or of probes are worked on
in plain Python, which is done before Spark would have started and needs no Java; more of them on Spark, within this process
(`local[*]`: all cores of this machine). Traces and answers of Prometheus are short: Python. The run of
`examples/five-replicas-three-racks.toml` (12,386 rows) took 1.7 to 2.8 s, nearly all of it processor time, in Python, and 34
to 53 s with 33 to 40 s of processor time on Spark (2 cores with other work beside, load average 3.5 to 4.7; commit a77634b).
`--master` (also `--driver-memory`) asks for Spark whatever the size, and names a cluster: `--master 'local[*]'` is Spark
within this process for every input. `--engine spark` and `--engine python` ask for one of both. Where Spark or its Java is missing, what is small enough (256 MiB) is done in
Python, and the command says so, and what to install. The page says which of them computed it. Both compute the same figures;
tests hold them equal.

## What is counted

- **Available** is an operation that was answered. One with unknown outcome was not.
- **Enough** replicas are up for an operation while those that its front end can reach hold an initial and a final quorum of
  its normal event class (`Deq/Ok` for Deq). Where `links.csv` says that a link was cut, the replica behind it was not up
  for that front end; times are summed over front ends, each counting once. Where the state of one replica is unknown, so is
  the up-set.
- **Intervals** are at 95 %. For a measured share the widest of three counts: Wilson's, as if attempts were independent; a
  bootstrap over stretches of time, which keeps together what failed together; and one by outage, where there were fewer than
  8 or no bootstrap can be made. A stretch can hold the longest outage of what was run, or, where that leaves fewer than 8,
  one of mean length; the interval is widened for their number, as Student's t is. The interval by outage takes outages to
  begin at a constant rate and to last exponentially distributed times: exact limits of the rate (F. Garwood, Biometrika 28,
  1936) and of the mean length give limits of time down by time up in the form of an F distribution (K. S. Trivedi,
  Probability and Statistics with Reliability, Queuing and Computer Science Applications, 2nd edition, 2001, example 10.27).
  Where no outage occurred, it is the rule of three (J. A. Hanley and A. Lippman-Hand, JAMA 249, 1983), two-sided, with
  outages as long as those of single replicas; where no replica was seen down either, nobody knows how long one lasts: no
  interval reckons with it, and the page says so. Differences between choices, or between measured and predicted, draw the
  same stretches for both; between choices of which neither met 6 outages, the interval is at least the one that takes
  both for independent, for so few may all have favoured one by chance (the sign test).
- **Causes** of the difference from independent replicas add up exactly: replicas failing together; when operations were
  tried; detection, within `--lag` seconds of a change that decides; the rest; and attempts in unknown state.
- **An outage** of an operation under a choice is a stretch of time in which some front end has not enough, by the trace.
  What several front ends meet at once, or one right after the other, is one outage; so a link that is cut counts once, and
  a replica's outage once for all. The mean of their lengths is the mean time to recovery. **As operations saw it** is another
  question: when was nobody answered? At each moment the latest attempt counts, whichever front end made it: such an outage
  lasts from an attempt that failed to the next that was answered. Where one front end fails while others are answered, it
  is therefore many short ones, and not one that lasts until that front end's turn comes again.
- **Every other choice**: all minimal choices of the type for these replicas, and read/write choices. The one recommended
  serves most of the mix (as tried, or `--mix`); of equals, which a calm or short trace has many of, the one that would serve
  most were failures independent, for it bears more of them than happened; then the one that asks for the fewest votes. A
  choice that was run but whose quorums can miss each other is measured, and never recommended.

## How it is checked

Spark and plain Python are two programs that share the words and the last step, from counts to figures. Tests run both over
the same input (all parts of a run with every kind of bad row, Parquet and lines at once, gaps, stretches that overlap or
have no length, attempts in the same microsecond) and ask for equal counts, and for latencies to 1e-12; and they read
Spark's plans: no row of Python, no product of two tables, nothing brought home that is not grouped. Figures are compared
with ones worked out by hand. In 1,000 made-up runs of ten stretches, with attempts that fail in outages, the 95 % bootstrap
interval held the true availability 916 times, Wilson's 524 times (`tests/unit/spark_reports/model/test_confidence.py` repeats it with
300). In made-up processes with exponential times up and down, of which a run meets 0.5 to 20 outages in the mean, the
bootstrap alone held it in as few as 43 of 100 of those that met one or two; with the interval by outage 91 to 99 of 100 of all
runs do (the same file repeats it with 1,500).

## Rows kept aside

A bad row is counted, kept with its reason, and listed in the report; it counts nowhere else. Of several rows of one front
end, object, operation and start (to the microsecond), the one that took least time stays: they come from a writer that
wrote one operation twice. Rows may stand in any order. Intervals of one replica or link that overlap and agree are joined.
Where they contradict each other, that time is unknown and so left out of every figure; all rows that take part are kept
aside, and what else they say still counts. The reasons, in the order in which they are tested:

"""
FIGURES = """
## figures.json

`x[].y` is the column `y` of the table `x`, in `tables/x.parquet` too.
"""


def rendered() -> str:
    """The page."""
    reasons = [
        reason + "…" if reason.endswith(" ") else reason for reason in (*contract.REASONS, probes.CONTRADICTS)
    ]
    parts = [INTRODUCTION, *[f"- {reason}\n" for reason in reasons], FIGURES]
    for table, keys in groupby(KEYS, key=_table):
        parts.append(f"\n### {table}\n\n| key | meaning |\n| --- | --- |\n")
        parts += [f"| `{key}` | {KEYS[key].replace('|', chr(92) + '|')} |\n" for key in keys]
    return "".join(parts)


def _table(key: str) -> str:
    head = key.partition(".")[0].removesuffix("[]")
    return head if "." in key else "the document"


if __name__ == "__main__":
    print(rendered(), end="")
