"""Certificates for tests, made by the openssl command: an authority, and what it signs."""

import subprocess
from pathlib import Path
from typing import Final, NamedTuple

TIMEOUT_S: Final = 60
DAYS: Final = "2"


class Pair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its files lie in `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder: Final = folder
        self.own: Final = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        _openssl(
            *(
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                DAYS,
            ),
            *("-subj", f"/CN={name}", "-keyout", str(self.own.key), "-out", str(self.own.certificate)),
        )

    def signed(self, name: str, names: str = "IP:127.0.0.1,DNS:localhost") -> Pair:
        """A certificate for `names`, in the form of OpenSSL's subjectAltName."""
        made = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, more = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        more.write_text(f"subjectAltName={names}\n")
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", str(made.key), "-out", str(request)),
        )
        _openssl(
            *(
                "x509",
                "-req",
                "-in",
                str(request),
                "-CA",
                str(self.own.certificate),
                "-CAkey",
                str(self.own.key),
            ),
            *("-CAcreateserial", "-days", DAYS, "-extfile", str(more), "-out", str(made.certificate)),
        )
        return made


def _openssl(*words: str) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
