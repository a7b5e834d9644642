"""Probes of some days, as a prober leaves them: one sample every five minutes, files by day, with all that goes wrong in a year."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

DAY_S: Final = 86_400
STEP_S: Final = 300
FIRST_S: Final = 1_793_491_200
"""2026-11-01."""

REPLICAS: Final = ("r1", "r2", "r3")


def date(day: int) -> str:
    return f"{datetime.fromtimestamp(FIRST_S + day * DAY_S, tz=UTC):%Y-%m-%d}"


def samples(day: int, seed: int = 1) -> list[dict[str, Any]]:
    """A day of each replica out of order: outages, gaps, lost samples, moments that are contradicted, and a sample of each day beside it."""
    rng = random.Random(100 * day + seed)
    rows: list[dict[str, Any]] = []
    start_s, end_s = FIRST_S + day * DAY_S, FIRST_S + (day + 1) * DAY_S
    for index, replica in enumerate(REPLICAS):
        up, times = 1, [start_s - STEP_S + 9, start_s + index]
        while times[-1] < end_s - STEP_S:
            steps = rng.choice([2, 4, 20]) if rng.random() < 0.03 else 1
            times.append(min(times[-1] + steps * STEP_S + rng.randint(-4, 4), end_s - 1))
        for time_s in [*times, end_s + STEP_S - 9]:
            up = 1 - up if rng.random() < (0.004 if up else 0.2) else up
            row = {"replica": replica, "time_s": float(time_s), "up": up, "latency_s": 0.01 if up else None}
            rows += [row, row | {"up": 1 - up}] if rng.random() < 0.01 else [row]
    return rng.sample(rows, len(rows))


def bad_rows(day: int) -> list[dict[str, Any]]:
    """Rows of a day that are kept aside."""
    noon_s = FIRST_S + day * DAY_S + DAY_S / 2
    good = {"replica": "r1", "time_s": noon_s, "up": 1, "latency_s": 0.01}
    return [good | {"up": 7}, good | {"latency_s": -1.0}, good | {"replica": ""}, good | {"up": None}]


UNDATED: Final = (
    '{"replica": "r1", "time_',
    '{"replica": "r2", "up": 1}',
    '{"replica": "r3", "time_s": 1e12, "up": 1}',
)
"""Lines that say no time: a torn one, and two that are wrong."""


def write_lines(folder: Path, day: int, rows: list[dict[str, Any]], torn: tuple[str, ...] = ()) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"probes-{date(day)}.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), *torn]) + "\n", encoding="utf-8")
    return path


def write_parquet(folder: Path, day: int, rows: list[dict[str, Any]], name: str = "part-0.parquet") -> Path:
    import pyarrow  # noqa: PLC0415 - collecting the tests must not need it
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / "probes" / f"day={date(day)}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    forms = {"replica": "string", "time_s": "double", "up": "double", "latency_s": "double"}
    columns = {key: pyarrow.array([row[key] for row in rows], form) for key, form in forms.items()}
    parquet.write_table(pyarrow.table(columns), path)
    return path
