"""Prints the OpenAPI document of both surfaces: `python -m quorate.replica.server.print_openapi > api_specs/openapi.json`."""

import sys
import tempfile
from pathlib import Path

import msgspec

from ...api_specs.cluster import ClusterDocument, ReplicaInfo
from ..data_folder.identity import open_folder
from ..service.embedded import embedded_front_end
from ..service.member import Member
from .app import create_app


def openapi_text() -> str:
    """The document as JSON text, as it is committed."""
    document = ClusterDocument("example", (ReplicaInfo("r1", "http://127.0.0.1:7001"),))
    with tempfile.TemporaryDirectory() as folder:
        member = Member(open_folder(Path(folder), document, "r1"))
        try:
            schema = create_app(member, lambda each: embedded_front_end(each, None)).openapi()
        finally:
            member.close()
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(openapi_text())
