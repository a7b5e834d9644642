"""Standard output as commands see it: what cannot be written there stands on standard error.

Imports nothing that an install without the cli extra lacks.
"""

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


class Answers(io.StringIO):
    """Standard output for one command. What it does not take goes to standard error, and so does all that follows; then `lost`
    says why. Text waits here until it is flushed, so that whatever is printed at once stands in one place."""

    def __init__(self, stream: TextIO, *, is_closed: bool) -> None:
        super().__init__()
        self._stream = stream
        self._trouble = "it is closed" if is_closed else ""
        self.lost = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """See `TextIO`."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """See `TextIO`."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """See `TextIO`."""
        return self._stream.fileno()

    def flush(self) -> None:
        """Write what waits. Raises BrokenPipeError, for who has seen enough of a table needs no second one."""
        text = self.getvalue()
        if not text:
            return
        self.seek(0)
        self.truncate()
        if not self._trouble:
            self._trouble = self._trouble_of_writing(text)
        if self._trouble:
            self.lost = self._trouble
            with suppress(OSError):
                print(text, end="", file=sys.stderr, flush=True)

    def _trouble_of_writing(self, text: str) -> str:
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeEncodeError as error:
            return f"its encoding is {error.encoding}"
        except OSError as error:
            lead_nowhere(self._stream)
            if isinstance(error, BrokenPipeError):
                raise
            return error.strerror or str(error)
        return ""


def lost_sentence(why: str) -> str:
    """What is told, below an answer on standard error, of why it stands there."""
    return f"The answer could not be written to standard output ({why}): it stands above. What was asked is done."


def lead_nowhere(stream: TextIO) -> None:
    """Let a stream that cannot be written take everything: Python tries again as it ends, and would end with code 120."""
    with suppress(OSError, ValueError):  # Of no file: then nothing waits in it.
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
