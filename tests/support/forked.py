"""Processes of `quorate`, forked from one that has imported what a replica needs: a start without Python's own, and without imports.

They are children of the test's process as any other: with a pid, an exit code, standard streams, variables and signals of
their own. That the command starts without this, tests of the command line see. Linux only; elsewhere all start as usual.
"""

import array
import atexit
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from quorate.cli.cluster import local_cluster

COMMAND: Final = [sys.executable, "-m", "quorate.cli.main"]
IS_POSSIBLE: Final = sys.platform == "linux" and "COVERAGE_PROCESS_CONFIG" not in os.environ
CLOSED: Final = "QUORATE_TESTS_CLOSED"
"""A variable with the numbers of the standard streams that a forked process finds closed."""
_SET_CHILD_SUBREAPER: Final = 36
_ORDER_BYTES_MAX: Final = 200_000
END_S: Final = 60.0


class Template:
    """A process to fork from, a child of this one, by the channel on which it is told what to do."""

    def __init__(self, channel: socket.socket) -> None:
        # Whoever has no parent any more is this process's child.
        if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        self._channel: Final = channel
        self._lock: Final = threading.Lock()

    def fork(self, words: list[str], fds: list[int], environment: dict[str, str], cwd: str) -> int:
        """The pid of a new process. With three `fds` these are its standard streams; with two it is a server of the first, until
        the second ends (see `tests.support.forking`)."""
        order = json.dumps({"words": words, "environment": environment, "cwd": cwd}).encode()
        assert len(order) < _ORDER_BYTES_MAX
        rights = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds)
        with self._lock:
            self._channel.sendmsg([order], [rights])
            return int(self._channel.recv(20))

    def close(self) -> None:
        """Have it end."""
        self._channel.close()


_templates: Final[list[Template]] = []


def template() -> Template:
    """The process that this one forks from, started where there is none."""
    if not _templates:
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, "-m", "tests.support.forking", str(theirs.fileno())]
            process = subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        made = Template(channel)
        atexit.register(process.wait, END_S)
        atexit.register(made.close)
        _templates.append(made)
    return _templates[0]


class ForkedPopen(subprocess.Popen[Any]):
    """`subprocess.Popen` of the `quorate` command. It makes a session of its own, as is asked for of replicas."""

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        if args[: len(COMMAND)] != COMMAND:
            raise ValueError(f"only quorate can be forked, not {args}")
        cwd, environment, pipes = rest[4], rest[5], rest[9:15]
        standard = pipes[0], pipes[3], pipes[5]
        streams = [own if given == -1 else given for own, given in enumerate(standard)]
        self.pid = template().fork(
            args[len(COMMAND) :], streams, dict(environment or os.environ), str(cwd or os.getcwd())
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def started(words: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
    """A process of `quorate` with these words; options are those of `Popen`."""
    return ForkedPopen([*COMMAND, *words], **options) if IS_POSSIBLE else started_anew(words, **options)


def started_anew(words: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
    """The same by a Python of its own, as users start it."""
    return subprocess.Popen([*COMMAND, *words], **options)


def fork_replicas(made: Template | None = None) -> None:
    """From now on a `LocalCluster` of this process forks its replicas, from that process if one is made already."""
    if made is not None:
        _templates[:] = [made]
    if IS_POSSIBLE:
        local_cluster.subprocess = SimpleNamespace(  # type: ignore[attr-defined, assignment]
            **{name: getattr(subprocess, name) for name in ("PIPE", "TimeoutExpired")}, Popen=ForkedPopen
        )
