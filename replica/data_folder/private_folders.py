"""Folders and files for their owner alone: making folders, those above included, taking back what was made, and durable files."""

import contextlib
import os
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


def write_durably(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; it is on disk when this returns."""
    temporary = path.with_name(path.name + ".new")
    with os.fdopen(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
