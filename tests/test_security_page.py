"""docs/security.md does what it says: its commands run, its program compiles, and it names what there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

from quorate.replica.openapi import openapi_text

PAGE = (Path(__file__).parent.parent / "docs" / "security.md").read_text()
TIMEOUT_S = 120


def test_commands_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- run: sh -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks:
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert re.search(r"shop +read,write", done.stdout)
    assert (tmp_path / "tokens").read_text().count("sha256=") == 2


def test_programs_of_the_page_compile() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert programs
    for program in programs:
        compile(program, "docs/security.md", "exec")


def test_paths_and_variables_of_the_page_exist() -> None:
    root = Path(__file__).parent.parent
    code = "".join(
        path.read_text() for room in ("cli", "client_sdk", "replica") for path in (root / room).glob("*.py")
    )
    names = set(re.findall(r"`(QUORATE_[A-Z_]+|--[a-z-]+)", PAGE))
    assert len(names) > 8
    for name in names:
        parts = (name,) if name.startswith("--") else (name.replace("QUORATE_TLS_", ""), name)
        assert any(part in code for part in parts), name
    assert '"/v1/admin/tokens"' in openapi_text()
