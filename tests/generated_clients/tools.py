"""The tools that users generate clients with, in the versions of the lock files beside this, as `make clients` installs them.

Owns where they lie and how they are called. Each call has a deadline, and a failure shows what the tool said.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent
DOCUMENT: Final = ROOT / "api_specs" / "openapi.json"
CLIENTS: Final = ROOT / ".clients"
NODE_MODULES: Final = CLIENTS / "node_modules"
PYTHON: Final = CLIENTS / "venv" / "bin" / "python"
NODE: Final = CLIENTS / "venv" / "bin" / "node"
TIMEOUT_S: Final = 120
AXIOS: Final = ("-g", "typescript-axios")
"""The client of a stock generator."""


class Said(NamedTuple):
    """What a command wrote to its output, and what to its errors."""

    output: str
    errors: str


def run(*command: str | Path, cwd: Path, **environment: str) -> Said:
    """Run a command, which must end well."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": f"{NODE.parent}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Said(done.stdout, done.stderr)


def generate_python(folder: Path, document: Path = DOCUMENT, drivers: Path = HERE) -> str:
    """Make the package `quorate_client` and its driver in an empty folder; the generator's complaints."""
    shutil.copy(drivers / "drive.py", folder)
    options = ["--meta", "none", "--output-path", "quorate_client"]
    generator = PYTHON.parent / "openapi-python-client"
    return run(generator, "generate", "--path", document, *options, cwd=folder).errors


def generate_typescript(folder: Path, document: Path = DOCUMENT, drivers: Path = HERE) -> None:
    """Make the types `quorate.ts` and the driver in an empty folder."""
    (folder / "node_modules").symlink_to(NODE_MODULES)
    for each in (HERE / "package.json", HERE / "tsconfig.json", drivers / "drive.ts"):
        shutil.copy(each, folder)
    generator = NODE_MODULES / "openapi-typescript" / "bin" / "cli.js"
    options = ["--output", "quorate.ts", "--default-non-nullable=false"]
    run(NODE, generator, document, *options, cwd=folder)


def generate_axios(folder: Path) -> None:
    """Make the client of a stock generator, and the driver, in an empty folder."""
    (folder / "node_modules").symlink_to(NODE_MODULES)
    shutil.copy(HERE / "drive_axios.ts", folder)
    generator = PYTHON.parent / "openapi-generator-cli"
    options = ["-q", "--additional-properties=useSingleRequestParameter=true"]
    run(generator, "generate", *AXIOS, *options, "-i", DOCUMENT, "-o", folder / "client", cwd=folder)


def check_axios(folder: Path) -> None:
    """Type-check the driver and the client, and make JavaScript of them."""
    options = ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "node16", "--types", "node"]
    compiler = NODE_MODULES / "typescript" / "bin" / "tsc"
    run(NODE, compiler, *options, "--outDir", "built", "drive_axios.ts", cwd=folder)


def check_python(folder: Path) -> None:
    """Type-check the driver against the package; what the generator's own code could do better stays unsaid."""
    options = ["--config-file=", "--strict", "--follow-imports=silent", f"--python-executable={PYTHON}"]
    run(sys.executable, "-m", "mypy", *options, "drive.py", cwd=folder, MYPYPATH="")


def check_typescript(folder: Path) -> None:
    """Type-check the driver and the types, and make JavaScript of them."""
    run(NODE, NODE_MODULES / "typescript" / "bin" / "tsc", "--project", "tsconfig.json", cwd=folder)
