"""Writes the OpenAPI documents as they are committed: `python -m quorate.replica.server.write_openapi api_specs`."""

import sys
import tempfile
from pathlib import Path

import msgspec

from ...api_specs.cluster import ClusterDocument, ReplicaInfo
from ..data_folder.identity import open_folder
from ..openapi.builder import api_document, protocol_document
from ..service.embedded import embedded_front_end
from ..service.member import Member
from .app import create_app


def documents() -> dict[str, str]:
    """Each document as JSON text, by the name of its file."""
    cluster = ClusterDocument("example", (ReplicaInfo("r1", "http://127.0.0.1:7001"),))
    with tempfile.TemporaryDirectory() as folder:
        member = Member(open_folder(Path(folder), cluster, "r1"))
        try:
            app = create_app(member, lambda each: embedded_front_end(each, None))
            made = {"openapi.json": api_document(app), "replica_protocol.json": protocol_document(app)}
        finally:
            member.close()
    return {
        name: msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
        for name, document in made.items()
    }


if __name__ == "__main__":
    for name, text in documents().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
