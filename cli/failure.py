"""How a command ends: exit codes, and the two errors of the command line itself.

Failure
└── Usage       the command line or a file it names is wrong: exit code 2

Both carry one sentence that says what to do. Errors of other rooms are put into words in `cli.output`.
"""

from typing import Final

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
"""It certainly did not happen: no quorum, refused, or the answer is no (a compare-and-set that did not match)."""
EXIT_USAGE: Final = 2
EXIT_UNKNOWN: Final = 3
"""It may or may not have happened."""


class Failure(Exception):
    """A command that cannot do what it was asked; the message is shown as it is."""

    exit_code: int = EXIT_FAILED


class Usage(Failure):
    """The command line, or a file that it names, is wrong."""

    exit_code = EXIT_USAGE


class PartlyDone(Failure):
    """Some of what was asked is done: to ask again would do it twice."""

    exit_code = EXIT_UNKNOWN
