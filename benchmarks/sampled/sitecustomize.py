"""Makes a Python process tell what its processor time goes to; Python imports this at its start where this folder is on its
path, and `processor_time.py` puts it there. Linux only.

The main thread is sampled: a timer of its own processor time sends a signal, whose handler, which runs in that thread as
soon as the call at hand has returned, notes the stack. So waiting is not counted. SQLite is used by another thread, which
no handler runs in; there, each call of the driver is measured by that thread's clock (a third of a microsecond each).
"""

import ctypes
import dis
import json
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

EVERY_NS = 2_000_000
"""Of processor time; the system's tick may be coarser."""
DEPTH = 12
START, STOP = signal.SIGUSR1, signal.SIGUSR2
_TICK = signal.SIGPROF
_RESUME = dis.opmap["RESUME"]


class _Sigevent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("_", ctypes.c_byte * 48),
    )


class _Spec(ctypes.Structure):
    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("s", ctypes.c_long),
        ("ns", ctypes.c_long),
    )


class Watch:
    """What was seen between START and STOP; then written to `file`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stacks: Counter[str] = Counter()
        self.spent_ns: Counter[str] = Counter()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        clock = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        event = _Sigevent(None, _TICK, 0)
        if self._libc.timer_create(clock, ctypes.byref(event), ctypes.byref(self._timer)):
            raise OSError(ctypes.get_errno(), "no timer of processor time")
        signal.signal(_TICK, self._note)
        signal.signal(START, self._start)
        signal.signal(STOP, self._stop)

    def _start(self, *_: object) -> None:
        self._stacks.clear()
        self.spent_ns.clear()
        self._every(EVERY_NS)

    def _stop(self, *_: object) -> None:
        self._every(0)
        told = {"stacks": dict(self._stacks), "spent_ns": dict(self.spent_ns)}
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(told))
        new.rename(self._file)

    def _every(self, interval_ns: int) -> None:
        spec = _Spec(0, interval_ns, 0, interval_ns)
        self._libc.timer_settime(self._timer, 0, ctypes.byref(spec), None)

    def _note(self, _: int, frame: FrameType | None) -> None:
        lines = []
        while frame is not None and len(lines) < DEPTH:
            # What has only just begun was called, or its loop was busy, while the signal waited: the caller's time.
            if lines or frame.f_code.co_code[frame.f_lasti] != _RESUME:
                lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno or 0}")
            frame = frame.f_back
        self._stacks["|".join(lines)] += 1


def _timed(watch: Watch, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        begun_ns = time.thread_time_ns()
        try:
            return call(*arguments)
        finally:
            watch.spent_ns[name] += time.thread_time_ns() - begun_ns

    return timed


def _time_sqlite(watch: Watch) -> None:
    """Let every connection that is opened from now on measure its calls."""

    class Cursor(sqlite3.Cursor):
        fetchone = _timed(watch, "SQLite", sqlite3.Cursor.fetchone)
        fetchall = _timed(watch, "SQLite", sqlite3.Cursor.fetchall)

    class Connection(sqlite3.Connection):
        execute = _timed(watch, "SQLite", sqlite3.Connection.execute)
        executemany = _timed(watch, "SQLite", sqlite3.Connection.executemany)
        commit = _timed(watch, "commit and sync", sqlite3.Connection.commit)

        def cursor(self, *_: object) -> Any:
            return super().cursor(Cursor)

    connect = sqlite3.connect

    def opened(*arguments: Any, **options: Any) -> Any:
        return connect(*arguments, **options, factory=Connection)

    sqlite3.connect = sqlite3.dbapi2.connect = opened


def listen(folder: str) -> None:
    """Watch this process between the signals START and STOP, and write what was seen to a file named for it."""
    _time_sqlite(Watch(Path(folder) / str(os.getpid())))


if "QUORATE_SAMPLES" in os.environ:
    listen(os.environ["QUORATE_SAMPLES"])
