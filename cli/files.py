"""Texts that the command line reads from files, with one sentence when it cannot."""

from pathlib import Path

from .failure import Usage


def read_text(path: Path, named: str, encoding: str = "utf-8") -> str:
    """The text of a file, which the sentence calls `named`; Usage when it cannot be read."""
    try:
        return path.read_text(encoding)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Usage(f"{named} cannot be read: {reason}.") from None
