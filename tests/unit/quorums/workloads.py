"""A file's reads and writes, which several tests plan for."""

from typing import Final

from quorate.adts.types.file import File
from quorate.quorums.choices.choices import constraints_of
from quorate.quorums.planning.cost import Workload

FILE: Final = constraints_of(File(), replication="timestamps")


def reads_and_writes(read: float) -> Workload:
    """Always this share of reads; the rest are writes."""
    return Workload(((1.0, {"Read/Ok": read, "Write/Ok": 1 - read}),))
