"""The entry of the `quorate` command. Imports nothing that an install without the cli extra lacks."""

import os
import sys
from contextlib import redirect_stdout, suppress
from typing import Final

from ..adts.collector import collector_off
from .failure import EXIT_UNKNOWN
from .streams import Answers, lead_nowhere, lost_sentence

EXTRAS: Final = {
    "typer": "cli",
    "rich": "cli",
    "fastapi": "replica",
    "uvicorn": "replica",
    "pyspark": "reports",
}


def main() -> None:
    """Run the command line. Exit code 3 where all went well but the answer could not be written to standard output."""
    is_closed = sys.stdout is None
    _open_missing_streams()
    _let_streams_block()
    answers = Answers(sys.stdout, is_closed=is_closed)
    try:
        with redirect_stdout(answers):
            _run()
    except SystemExit as ended:
        if answers.lost and not ended.code:
            with suppress(OSError):
                print(f"quorate: {lost_sentence(answers.lost)}", file=sys.stderr, flush=True)
            sys.exit(EXIT_UNKNOWN)
        raise
    finally:
        _give_up_standard_error()


def _run() -> None:
    """Run the command; exit code 2 and a sentence where a part of the install is missing."""
    try:
        # What is imported stays: a search for garbage among it finds none, and is a tenth of the start.
        with collector_off():
            from .app import run  # noqa: PLC0415
        run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        print(
            f"quorate: the package {missing} is missing, which this command needs: "
            f"pip install 'quorate[{EXTRAS[missing]}]'",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:  # while the imports ran; later the command line sees to it
        sys.exit(130)


def _give_up_standard_error() -> None:
    """What it did not take cannot be told; the exit code of the command still can."""
    try:
        sys.stderr.flush()
    except OSError:
        lead_nowhere(sys.stderr)


def _open_missing_streams() -> None:
    """Lets standard streams that the caller closed lead nowhere: the next file opened would take their numbers, which
    uvloop takes for a mistake of ours and aborts."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115


def _let_streams_block() -> None:
    """Lets a write wait for who reads: from a pipe that does not block, and is full, Python leaves out the rest without a word."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # Of no file: then nothing blocks.
            os.set_blocking(stream.fileno(), True)


if __name__ == "__main__":
    main()
