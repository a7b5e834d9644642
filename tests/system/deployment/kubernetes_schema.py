"""Makes kubernetes.schema.json, by which `test_kubernetes.py` reads the manifests, of the schemas in the package kubernetes-validate.

    pip download --no-deps kubernetes-validate; unzip kubernetes_validate-*.whl -d unpacked
    python -m tests.system.deployment.kubernetes_schema unpacked/kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict

They are those of Kubernetes's own OpenAPI document (Apache-2.0), and refuse what it does not know. The whole package would be 17,000 files.
Left out here are words for people, what no manifest writes (`status`), and all kinds but these.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

KINDS: Final = {
    "Namespace": "namespace-v1",
    "PodDisruptionBudget": "poddisruptionbudget-policy-v1",
    "Service": "service-v1",
    "StatefulSet": "statefulset-apps-v1",
}
"""By kind, the name of its file."""
OUT: Final = Path(__file__).with_name("kubernetes.schema.json")
_ELSEWHERE: Final = "/api/_definitions.json"


def made(folder: Path) -> dict[str, Any]:
    """One document: a schema for each kind, and what these refer to."""
    there = json.loads((folder / "_definitions.json").read_text())["$defs"]
    kinds = {kind: _short(json.loads((folder / f"{name}.json").read_text())) for kind, name in KINDS.items()}
    for schema in kinds.values():
        del schema["properties"]["status"]
    found: dict[str, Any] = dict(kinds)
    asked = _referred_to(kinds)
    while asked:
        name = asked.pop()
        if name not in found:
            found[name] = _short(there[name])
            asked |= _referred_to(found[name])
    text = json.dumps(found).replace(f'"{_ELSEWHERE}#', '"#')
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": json.loads(text)}


def _referred_to(schema: Any) -> set[str]:
    return set(re.findall(r'#/\$defs/([\w.-]+)"', json.dumps(schema)))


def _short(schema: Any) -> Any:
    """Without words for people, and without names that would begin another document."""
    if isinstance(schema, list):
        return [_short(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _short(value)
        for key, value in schema.items()
        if not (isinstance(value, str) and key in {"description", "$id", "$schema"})
        and not key.startswith("x-kubernetes")
    }


if __name__ == "__main__":
    OUT.write_text(json.dumps(made(Path(sys.argv[1])), separators=(",", ":"), sort_keys=True) + "\n")
