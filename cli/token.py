"""The bearer token from the environment: never from the command line, where every user of the machine could read it."""

import os
from pathlib import Path

from quorate.cli.failure import Usage


def read_token() -> str | None:
    """The token of QUORATE_TOKEN, or of the file that QUORATE_TOKEN_FILE names; None when neither is set."""
    if token := os.environ.get("QUORATE_TOKEN", "").strip():
        return token
    if not (name := os.environ.get("QUORATE_TOKEN_FILE")):
        return None
    try:
        token = Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"QUORATE_TOKEN_FILE names {name}, which cannot be read: {error}.") from None
    if not token:
        raise Usage(f"QUORATE_TOKEN_FILE names {name}, which is empty: put the token there.")
    return token
