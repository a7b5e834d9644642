"""The mark beside the database is there whole or not at all, whatever ends the process or fails while it is made."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from quorate.replica.store.commit_counter import Mark


@pytest.mark.parametrize("call", ["open", "write", "pwrite", "fsync", "rename", "close"])
def test_a_mark_that_could_not_be_made_is_no_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What is on the disk when a call fails is what a kill at that instant leaves."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        Mark(tmp_path / "database").write(7)
    assert Mark(tmp_path / "database").read() in (0, 7)
    mark = Mark(tmp_path / "database")
    mark.write(8)
    mark.close()
    assert Mark(tmp_path / "database").read() == 8, "and it is made once there is room"
