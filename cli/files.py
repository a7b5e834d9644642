"""Files and folders that the command line names, with one sentence when they cannot be used."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .failure import Usage


def read_text(path: Path, named: str, encoding: str = "utf-8") -> str:
    """The text of a file, which the sentence calls `named`; Usage when it cannot be read."""
    try:
        return path.read_text(encoding)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Usage(f"{named} cannot be read: {reason}.") from None


@contextmanager
def used_as_folder(folder: Path, option: str) -> Iterator[None]:
    """Within, the folder that `option` names is made and looked into; Usage when it cannot be."""
    try:
        yield
    except OSError as error:
        reason = "it is a file" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise Usage(f"{folder} cannot be used as a folder: {reason}. Name another with {option}.") from None
