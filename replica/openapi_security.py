"""What the OpenAPI document says of access: the schemes, the scope of each operation, and the headers of refusals. Pure.

Scopes come from `rights`, so that document and gate cannot disagree.
"""

from typing import Any, Final

from quorate.replica.rights import OPEN_PREFIX, scope_needed

_METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head", "options"})
_SCHEMES: Final = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token with the scope that the operation names: read, write (which includes read), admin, or "
        "replica (which includes write). A replica on a loopback address may be served without tokens.",
    },
    "certificate": {
        "type": "mutualTLS",
        "description": "Besides the token, where a replica is served with `--tls-client-ca`.",
    },
}
_CHALLENGE: Final = {
    "WWW-Authenticate": {
        "description": "What is missing: a valid token, or the scope that it names (RFC 6750)",
        "schema": {"type": "string"},
    }
}
_RETRY: Final = {
    "Retry-After": {
        "description": "In how many seconds to try again (a 503 has it where waiting helps)",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_HEADERS: Final = {"401": _CHALLENGE, "403": _CHALLENGE, "429": _RETRY, "503": _RETRY}


def describe_security(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document, for all paths that it has, who may call them."""
    document["components"]["securitySchemes"] = _SCHEMES
    for path, item in document["paths"].items():
        for method in item.keys() & _METHODS:
            operation = item[method]
            is_open = path.startswith(OPEN_PREFIX)
            operation["security"] = [] if is_open else [{"token": [scope_needed(method.upper(), path)]}, {}]
            for status, headers in _HEADERS.items():
                if status in operation["responses"]:
                    answer = operation["responses"][status]
                    operation["responses"][status] = answer | {"headers": answer.get("headers", {}) | headers}
