"""The command `quorate` as a small program that has its work done by a process forked from one with all imports (see
`tests.support.forked`): for pages, which start hundreds. It has the streams, folder, variables and exit code of the caller;
signals are passed on.
"""

import atexit
import os
import shlex
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support import forked

_PROGRAM: Final = """\
import array, json, os, signal, socket, sys

with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
    channel.connect({door!r})
    order = dict(words=sys.argv[1:], environment=dict(os.environ), cwd=os.getcwd())
    streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
    channel.sendmsg([json.dumps(order).encode()], [streams])
    pid = int(channel.recv(20))

    def pass_on(number, _):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    code = int(channel.recv(20))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
_COMMAND: Final = '#!/bin/sh\nexec {python} -IS {program} "$@"\n'

_programs: Final[list[Path]] = []


def put_into(folder: Path) -> None:
    """Put the command there; nothing where no process can be forked that way."""
    if not forked.IS_POSSIBLE:
        return
    if not _programs:
        _programs.append(_program())
    words = {"python": shlex.quote(sys.executable), "program": shlex.quote(str(_programs[0]))}
    (folder / "quorate").write_text(_COMMAND.format(**words))
    (folder / "quorate").chmod(0o755)


def _program() -> Path:
    """Open the door, and write the program that goes there; both are for this process's user alone, and end with it."""
    folder = Path(tempfile.mkdtemp(prefix="quorate-"))
    atexit.register(shutil.rmtree, folder)
    ending, _held = os.pipe()  # the other end is open for as long as this process lives
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(str(folder / "door"))
        door.listen()
        forked.template().fork([], [door.fileno(), ending], {}, str(folder))
    os.close(ending)
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(door=str(folder / "door")))
    return program
