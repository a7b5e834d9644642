"""The manifest of a cluster in a store of days: what is kept of which day, and of which input files it was made. Pure.

docs/reference/availability-store.md describes it.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from ..model.aggregates import Rejected, together
from ..model.days import span_of_dates
from ..model.errors import ReportError

SCHEMA_VERSION: Final = 1
"""Of the manifest and of the edges together; whatever changes what a day comes to, as `probes.LOST_MAX`, is another one."""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What rows come to beside their edges: how many there are, the replicas that they name, and what was kept aside."""

    rows: int = 0
    replicas: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()


def all_facts(parts: Iterable[Facts]) -> Facts:
    """Those of several parts together."""
    known = list(parts)
    return Facts(
        sum(each.rows for each in known),
        tuple(sorted({name for each in known for name in each.replicas})),
        together(row for each in known for row in each.rejected),
    )


class InputFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the input as it was when it was read; `days` are the dates of its rows, `undated` its rows that say no time."""

    bytes: int
    modified_ns: int
    sha256: str
    days: tuple[str, ...] = ()
    undated: Facts = Facts()


class KeptDay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a day: `edges` is the file with its edges, `files` what it was made of, `digest` the same with the content."""

    digest: str
    edges: str
    files: tuple[str, ...]
    facts: Facts


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a store keeps of one cluster. Paths of `files` are those within the input; dates are of UTC.

    `votes` are those that the cluster began with: its replicas; without any, all that its samples name are.
    """

    cluster: str
    step_us: int
    votes: dict[str, int] = {}
    files: dict[str, InputFile] = {}
    days: dict[str, KeptDay] = {}
    schema_version: int = SCHEMA_VERSION

    def digest(self, files: Mapping[str, InputFile]) -> str:
        """What the edges of a day depend on: these files of the input, and how they are read."""
        content = sorted((path, each.sha256) for path, each in files.items())
        how = (self.schema_version, self.step_us, sorted(self.votes), content)
        return sha256(msgspec.json.encode(how)).hexdigest()


class _Version(msgspec.Struct):
    schema_version: int


def encode(manifest: Manifest) -> bytes:
    """Give the text of a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(text: bytes, place: str) -> Manifest:
    """Read a manifest; `place` is named in errors.

    Raises:
        ReportError: it is of a newer schema, or none.
    """
    try:
        version = msgspec.json.decode(text, type=_Version).schema_version
        if version > SCHEMA_VERSION:
            raise ReportError(
                f"{place} is of schema version {version}, and this release knows {SCHEMA_VERSION}: use the release that "
                "wrote it, or give another --store"
            )
        manifest = msgspec.json.decode(text, type=Manifest)
        if manifest.days:
            span_of_dates(min(manifest.days), max(manifest.days))
    except (msgspec.DecodeError, ValueError) as error:
        raise ReportError(
            f"{place} is no manifest of a store ({error}); bring it back from a copy, or take its folder away and make the "
            "days anew with --input"
        ) from error
    return manifest
