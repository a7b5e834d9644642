"""The software bill of materials of a release, in CycloneDX 1.6: all that users may install with it, and what its wheel holds of others.

Made from `requirements.lock` and the table of licences, so that the same commit gives the same bill. The hashes of files are in
`requirements.lock`, for a package has many files.
"""

import json
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from quorate import __version__
from tests.project.components import CLIENT, LICENCES, ROOT, Component, asked_for, for_users, name_of, pinned

NAME: Final = "quorate"


def bill() -> dict[str, Any]:
    """The document."""
    components = pinned()
    users = for_users()
    required = set(users[CLIENT])
    wanted = [components[each] for each in sorted({name for names in users.values() for name in names})]
    swagger = _swagger_ui()
    whole: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": _place(NAME, __version__),
                "name": NAME,
                "version": __version__,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [swagger, *(each for one in wanted for each in _entries(one, one.name in required))],
        "dependencies": [
            {"ref": _place(NAME, __version__), "dependsOn": [swagger["bom-ref"], *_direct(components)]},
            *(each for one in wanted for each in _needs(one, components)),
        ],
    }
    number = uuid5(NAMESPACE_URL, json.dumps(whole, sort_keys=True))
    return {**whole, "serialNumber": f"urn:uuid:{number}"}


def _place(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _places(component: Component) -> list[str]:
    return [_place(component.name, version) for version in component.versions]


def _entries(component: Component, is_required: bool) -> list[dict[str, Any]]:
    return [
        {
            "type": "library",
            "bom-ref": _place(component.name, version),
            "name": component.name,
            "version": version,
            "purl": _place(component.name, version),
            "scope": "required" if is_required else "optional",
            "licenses": [{"expression": LICENCES[component.name]}],
        }
        for version in component.versions
    ]


def _needs(component: Component, components: dict[str, Component]) -> list[dict[str, Any]]:
    needed = [place for name in component.needs for place in _places(components[name])]
    return [{"ref": place, "dependsOn": needed} for place in _places(component)]


def _direct(components: dict[str, Component]) -> list[str]:
    """What pyproject.toml itself asks for, in the client or an extra."""
    names = {name_of(line) for lines in asked_for().values() for line in lines}
    return [place for name in sorted(names) for place in _places(components[name])]


def _swagger_ui() -> dict[str, Any]:
    """What lies in the wheel as it came from another package: the pages of the API."""
    lock = json.loads((ROOT / "tests/generated_clients/package-lock.json").read_text())
    version = lock["packages"]["node_modules/swagger-ui-dist"]["version"]
    place = f"pkg:npm/swagger-ui-dist@{version}"
    return {
        "type": "library",
        "bom-ref": place,
        "name": "swagger-ui-dist",
        "version": version,
        "purl": place,
        "scope": "required",
        "licenses": [{"expression": "Apache-2.0"}],
    }
