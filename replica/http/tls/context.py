"""TLS of a replica: its certificate, and the authority that must have signed its callers' (mutual TLS).

Owns the server's context, which is made anew from new files without a restart. A name that says where from: `tls` is the SDK's.
"""

import os
import ssl
from pathlib import Path
from typing import Final

from msgspec import Struct

from ....client_sdk.transport.tls import load_own, words_of
from .records import RecordContext

KEY_EXCHANGE: Final = "prime256v1"
"""The one group of keys. RFC 8446, section 9.1: everyone has it. A hello that names ffdhe8192, which OpenSSL takes unless told otherwise,
costs 0.1 s of the processor's time, and its sender nothing."""


class BadTls(ValueError):
    """Files that cannot be used; the sentence names them."""


class ServerTls(Struct, frozen=True):
    """Files in PEM form. `client_ca`: only callers with a certificate signed by it are let in (empty: all)."""

    certificate: str
    key: str
    client_ca: str = ""


class ServerContext:
    """A context whose files may be read again. Raises BadTls when they cannot be used."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls: Final = tls
        self._stamp = _stamp(tls)
        self.context = _made(tls)
        """For connections from now on."""

    def look(self, *, wanted: bool = False) -> bool:
        """Read certificate, key and authority again if the files have changed, or if `wanted`; whether they were read.

        Connections that are open keep what they began with.
        """
        stamp = _stamp(self._tls)
        if stamp == self._stamp and not wanted:
            return False
        self._stamp = stamp
        self.context = _made(self._tls)
        return True


def _made(tls: ServerTls) -> ssl.SSLContext:
    for name in filter(None, (tls.certificate, tls.key, tls.client_ca)):
        # OpenSSL would block on a pipe, and the event loop with it. A missing file it names itself.
        if Path(name).exists() and not Path(name).is_file():
            raise BadTls(f"{name} is not a regular file: put the certificate or key itself there")
    context = RecordContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ecdh_curve(KEY_EXCHANGE)
    if (problem := load_own(context, tls.certificate, tls.key)) is not None:
        raise BadTls(problem)
    if tls.client_ca:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise BadTls(
                f"{tls.client_ca} holds no certificate that can be used: {words_of(error)}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _stamp(tls: ServerTls) -> tuple[int, ...]:
    try:
        found = [os.stat(each) for each in (tls.certificate, tls.key, tls.client_ca) if each]
    except OSError:
        return ()
    # Mode and change time, too: a key that could not be read is mended by chmod alone, which leaves the rest as it is.
    return tuple(
        number
        for each in found
        for number in (each.st_mtime_ns, each.st_ctime_ns, each.st_mode, each.st_size, each.st_ino)
    )
