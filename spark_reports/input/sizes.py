"""How much an input holds, compressed or not: rows and decompressed bytes, from Parquet's footers and from the beginnings of files.

A gzip file of JSON lines holds some twenty times what it takes on disk, and its trailer tells no more than 4 GiB, nor more than its
last member. So what a file holds is estimated from its beginning. Of many files some are looked at, spread over all.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Final, NamedTuple

from ..model.places import Place
from .sources import Source

SAMPLE_BYTES: Final = 256 << 10
"""So much is read from the beginning of a file, as it lies on disk."""

TEXT_BYTES_MAX: Final = 16 << 20
"""And no more than so much text is made of it."""

FILES_MAX: Final = 64
"""Of more files of one kind, so many are looked at."""


class Size(NamedTuple):
    """Rows, and bytes once decompressed; estimates for text."""

    rows: int
    text_bytes: int


def size_of(source: Source) -> Size:
    """Estimate what the rows of a source come to.

    A file that cannot be read counts as empty: whoever reads its rows says what is wrong with it.
    """
    folders = (source.operation_parquet, source.probe_parquet)
    packed = [sorted(folder.rglob("*.parquet")) for folder in folders if folder is not None]
    tables = [path for path in (source.replicas, source.links) if path is not None]
    texts = [
        [path for path in paths if (path.suffix == ".gz") is compressed]
        for paths in (source.operation_lines, source.probe_lines, tables, source.foreign)
        for compressed in (False, True)
    ]
    found = [_estimated(paths, _packed) for paths in packed] + [_estimated(paths, _text) for paths in texts]
    return Size(sum(each.rows for each in found), sum(each.text_bytes for each in found))


def _estimated(paths: Sequence[Place], look: Callable[[Place], Size]) -> Size:
    """What files of one kind hold: those looked at, and the others in proportion to their size on disk."""
    looked = paths[:: ceil(len(paths) / FILES_MAX)] if paths else []
    known = [look(path) for path in looked]
    part = _disk_bytes(looked)
    scale = _disk_bytes(paths) / part if part else 0.0
    return Size(
        round(scale * sum(each.rows for each in known)), round(scale * sum(each.text_bytes for each in known))
    )


def _disk_bytes(paths: Iterable[Place]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


def _packed(path: Place) -> Size:
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - plain runs need no pyarrow
    except ModuleNotFoundError:
        return Size(0, 0)
    try:
        with path.open("rb") as file:
            footer = parquet.read_metadata(file)
    except (ArrowException, OSError):
        return Size(0, 0)
    groups = range(footer.num_row_groups)
    return Size(footer.num_rows, sum(footer.row_group(index).total_byte_size for index in groups))


def _text(path: Place) -> Size:
    try:
        with path.open("rb") as file:
            head = file.read(SAMPLE_BYTES)
        whole = path.stat().st_size
    except OSError:
        return Size(0, 0)
    used, text = len(head), head
    if path.suffix == ".gz":
        used, text = _decompressed(head)
    scale = whole / used if used else 0.0
    return Size(round(scale * text.count(b"\n")), round(scale * len(text)))


def _decompressed(head: bytes) -> tuple[int, bytes]:
    """Decompress the beginning of a file of gzip members: how much of it was used, and the text."""
    texts: list[bytes] = []
    rest = head
    left = TEXT_BYTES_MAX
    try:
        while rest and left > 0:
            member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            texts.append(member.decompress(rest, left))
            left -= len(texts[-1])
            rest = member.unused_data or member.unconsumed_tail
            if not member.eof:
                break
    except zlib.error:
        return len(head), b""
    return len(head) - len(rest), b"".join(texts)
