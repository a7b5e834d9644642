"""The pages about security name what there is; their commands are run by tests/docs."""

import re
from pathlib import Path

from tests.support.documents import API

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "security.md").read_text() + (
    DOCS / "how-to" / "tokens-and-tls.md"
).read_text()


def test_paths_and_variables_of_the_page_exist() -> None:
    root = Path(__file__).parents[2]
    code = "".join(
        path.read_text() for room in ("cli", "client_sdk", "replica") for path in (root / room).rglob("*.py")
    )
    names = set(re.findall(r"`(QUORATE_[A-Z_]+|--[a-z-]+)", PAGE))
    assert len(names) > 8
    for name in names:
        parts = (name,) if name.startswith("--") else (name.replace("QUORATE_TLS_", ""), name)
        assert any(part in code for part in parts), name
    assert "/v1/admin/tokens" in API["paths"]
