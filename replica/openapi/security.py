"""What the OpenAPI document says of access: the schemes, and the scope of each operation. Pure.

Scopes come from `rights`, so that document and gate cannot disagree.
"""

from typing import Any, Final

from ..access.authorization import OPEN_PREFIX, is_public, scope_needed

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


def describe_security(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document, for all paths that it has, who may call them."""
    document["components"]["securitySchemes"] = _SCHEMES
    for path, item in document["paths"].items():
        for method in item.keys() & _METHODS:
            operation = item[method]
            is_open = path.startswith(OPEN_PREFIX) or is_public(method.upper(), path)
            operation["security"] = [] if is_open else [{"token": [scope_needed(method.upper(), path)]}, {}]
