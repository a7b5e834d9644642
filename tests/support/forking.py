"""The process that `tests.support.forked` forks from: `python -m tests.support.forking FD`.

A child that is given a door instead of an order goes on the same way for `tests.support.quick_command`: whoever comes to the
door is served by a child of it, and told how that ended.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
from importlib import import_module
from typing import Any, Final, NoReturn

from quorate.cli import app, main
from quorate.replica.server import server  # noqa: F401 - so that the forked find it
from tests.support import forked
from tests.support.patience import be_patient

ORDER_BYTES_MAX: Final = 200_000
STREAMS: Final = 3
LOST_OUTPUT: Final = 120
"""What Python ends with when it cannot write the last of what was printed."""
NUMBER_BYTES: Final = 20
STARTERS: Final = ("up", "demo", "measure")
"""Commands that start replicas, each from a process of its own to fork from."""
FREQUENT: Final = ("serve", "status", "token", "queue", "quorums")
"""Commands whose modules most processes need."""


def _next_child(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Returns in each child, with its order and streams, or with a door and what ends it; None when nobody wants any more."""
    while True:
        order, streams, _, _ = socket.recv_fds(channel, ORDER_BYTES_MAX, STREAMS)
        if not order:
            return None
        reading, writing = os.pipe()
        if (between := os.fork()) == 0:
            # Forked twice, and not our child: its parent is the next above us that takes in orphans.
            if (pid := os.fork()) == 0:
                os.close(reading)
                os.close(writing)
                channel.close()
                return json.loads(order), streams
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(between, 0)
        channel.send(os.read(reading, NUMBER_BYTES))
        for fd in (reading, *streams):
            os.close(fd)


def _next_caller(door: socket.socket, ending: int) -> tuple[dict[str, Any], list[int]] | None:
    """Returns in a child for each caller at the door, with its order and streams; None at the end of that file."""
    while True:
        found, _, _ = select.select([door.fileno(), ending], [], [])
        if ending in found:
            return None
        channel, _ = door.accept()
        if os.fork() == 0:
            door.close()
            os.close(ending)
            return _served(channel)
        channel.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _served(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns in the process that the caller orders; this one tells its pid and how it ended, and ends it when the caller has
    gone."""
    order, streams, _, _ = socket.recv_fds(channel, ORDER_BYTES_MAX, STREAMS)
    if not order:
        os._exit(0)
    if (pid := os.fork()) == 0:
        channel.close()
        return json.loads(order), streams
    for fd in streams:
        os.close(fd)
    channel.send(str(pid).encode())
    ended = os.pidfd_open(pid)
    found, _, _ = select.select([ended, channel.fileno()], [], [])
    if ended not in found:
        os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = order["words"]
    for number in map(int, os.environ.pop(forked.CLOSED, "").split()):  # as Python finds them where it starts
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)


def _let_it_fork() -> None:
    """From now on a `LocalCluster` of this process forks its replicas from another child, which is as this process is now."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if (pid := os.fork()) == 0:
        ours.close()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(STREAMS):  # else who reads what the command prints would wait for this one, too
            os.dup2(nowhere, number)
        child = _next_child(theirs)
        if child is None:
            os._exit(0)
        _become(*child)
    else:
        theirs.close()
        made = forked.Template(ours)
        ended = os.pidfd_open(pid)
        atexit.register(
            select.select, [ended], [], [], forked.END_S
        )  # no command ends before what it started
        atexit.register(made.close)
        forked.fork_replicas(made)


def _run(channel: socket.socket) -> None:
    child = _next_child(channel)
    if child is not None and len(child[1]) < STREAMS:
        door, ending = child[1]
        child = _next_caller(socket.socket(fileno=door), ending)
    else:
        be_patient()  # And what pages show is as users have it.
    if child is None:
        return
    _become(*child)
    if sys.argv[1] in STARTERS:
        _let_it_fork()
    try:
        main.main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _end(end.code or 0)
        raise


def _end(code: int) -> NoReturn:
    """As Python ends, but for taking apart all that is imported: each page of it would be copied first. What Python says of that, as of a
    task that nobody awaited, tests that start the command anew would see."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed, or none
        code = LOST_OUTPUT
    os._exit(code)


LATE: Final = (
    "pydantic.v1",
    "quorate.replica.logs.formats",
    "typer._adapters",
    "typer.rich_utils",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
)
"""Modules that are imported while a command runs or a replica starts."""


def _prepare() -> None:
    """Import what processes would each import for themselves."""
    for word in FREQUENT:
        app.app_of(word)
    for module in LATE:
        import_module(module)
    import_module("gc").freeze()  # Else each process looks through all of this for garbage, time and again.


if __name__ == "__main__":
    _prepare()
    _run(socket.socket(fileno=int(sys.argv[1])))
