"""Folders for their owner alone: making them, those above included, and taking back what was made."""

import contextlib
from pathlib import Path


def make_private_folder(path: Path) -> list[Path]:
    """Make the folder and those above it that are missing, with mode 0700; those that were made, the outermost first.
    Folders that exist stay as they are. Raises OSError."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    made = []
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):  # Somebody else has made it meanwhile: it is theirs.
            each.mkdir(mode=0o700)
            made.append(each)
    path.mkdir(exist_ok=True)  # Raises where a file is in the way.
    return made


def remove_made(made: list[Path]) -> None:
    """Undo `make_private_folder`, as far as the folders are empty."""
    with contextlib.suppress(OSError):
        for each in reversed(made):
            each.rmdir()
