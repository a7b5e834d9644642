"""The committed OpenAPI documents: of the HTTP API, of the replica protocol, and both as one."""

import json
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "api_specs"
API: Final[dict[str, Any]] = json.loads((FOLDER / "openapi.json").read_text())
PROTOCOL: Final[dict[str, Any]] = json.loads((FOLDER / "replica_protocol.json").read_text())
BOTH: Final[dict[str, Any]] = {
    **API,
    "paths": {**API["paths"], **PROTOCOL["paths"]},
    "components": {
        kind: {**each, **PROTOCOL["components"][kind]} for kind, each in API["components"].items()
    },
    "tags": [*API["tags"], *PROTOCOL["tags"]],
}
"""What has one name in both says the same in both: `tests/unit/api_specs/test_openapi.py`."""
