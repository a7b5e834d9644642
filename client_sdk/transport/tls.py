"""TLS for front ends: whom they trust, and which certificate they show.

Owns the making of contexts from files. There is no way to turn off the checks of names and certificates, and none back to
plain HTTP: an https:// URL that cannot be trusted does not answer.
"""

import os
import ssl
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ..errors import BadInput


class ClientTls(Struct, frozen=True):
    """Files in PEM form. `ca` is the authority that signed the replicas' certificates (empty: those the system trusts);
    `certificate` and `key` are shown to replicas that ask for one (mutual TLS)."""

    ca: str = ""
    certificate: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext:
        """What a connection needs. Raises BadInput for files that cannot be used."""
        return _context(self)


SYSTEM_TRUST: Final = ClientTls()


@lru_cache(16)
def _context(tls: ClientTls) -> ssl.SSLContext:
    if bool(tls.certificate) != bool(tls.key):
        raise BadInput("tls: give a certificate and its key, or neither")
    try:
        context = ssl.create_default_context(cafile=tls.ca or None)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(f"tls: {tls.ca} holds no certificate that can be used: {words_of(error)}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert context.check_hostname, "the default of create_default_context"
    assert context.verify_mode is ssl.CERT_REQUIRED, "likewise"
    if tls.certificate:
        problem = load_own(context, tls.certificate, tls.key)
        if problem is not None:
            raise BadInput(f"tls: {problem}")
    return context


def from_environment() -> ClientTls:
    """The files that QUORATE_TLS_CA, QUORATE_TLS_CERT and QUORATE_TLS_KEY name."""
    ca, certificate, key = (os.environ.get(f"QUORATE_TLS_{name}", "") for name in ("CA", "CERT", "KEY"))
    return ClientTls(ca, certificate, key)


def load_own(context: ssl.SSLContext, certificate: str, key: str) -> str | None:
    """Have `context` show this certificate; or why it cannot."""
    try:
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        return (
            f"the certificate {certificate} with the key {key} cannot be used: {words_of(error)} "
            "(PEM form, and the key without a passphrase)"
        )
    return None


def words_of(error: Exception) -> str:
    """What went wrong with a file, without its name."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
