"""Secrets and files of TLS from the environment: never from the command line, where every user of the machine could read
a token."""

import os
import stat
from pathlib import Path

from ..api_specs.tokens import TOKEN_CHARS_MAX, token_problem
from .failure import Usage
from .output import say


def read_token() -> str | None:
    """The token of QUORATE_TOKEN, or of the file that QUORATE_TOKEN_FILE names; None when neither is set."""
    if token := os.environ.get("QUORATE_TOKEN", "").strip():
        return _checked(token, "QUORATE_TOKEN")
    if not (name := os.environ.get("QUORATE_TOKEN_FILE")):
        return None
    try:
        with Path(name).open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            # Blanks around do not count, and a file that is no token at all need not be read to its end.
            token = file.read(2 * TOKEN_CHARS_MAX).decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise Usage(f"QUORATE_TOKEN_FILE names {name}, which is no text: put the token there.") from None
    except OSError as error:
        raise Usage(f"QUORATE_TOKEN_FILE names {name}, which cannot be read: {error.strerror}.") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        say(f"quorate: other users of this machine may read the token in {name}: chmod 600 {name}")
    return _checked(token, f"QUORATE_TOKEN_FILE names {name}, and its text")


def _checked(token: str, source: str) -> str:
    """`token`, when it can be sent; its text is never shown."""
    if (problem := token_problem(token)) is not None:
        raise Usage(
            f"{source} is no token: {problem}. Put one token there, of printable ASCII without blanks."
        )
    return token
