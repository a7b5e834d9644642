"""A client of TLS by OpenSSL's own functions, which can say what Python's module ssl cannot: it changes its keys, and asks for any group."""

import _ssl
import ctypes
import ssl
from typing import Any, Final

SET_GROUPS_LIST: Final = 92
SET_MIN_PROTOCOL: Final = 123
SET_MAX_PROTOCOL: Final = 124
OUT_BYTES: Final = 1 << 20

_LIBRARY: Final = ctypes.CDLL(_ssl.__file__)
"""That with which Python is linked."""


def _made(function: str, *given: Any) -> ctypes.c_void_p:
    called = getattr(_LIBRARY, function)
    called.restype = ctypes.c_void_p
    found = called(*given)
    assert found, function
    return ctypes.c_void_p(found)


class OpensslClient:
    """One connection, in memory: trusts anybody. `group` is the only one that it offers for keys (left out: what OpenSSL offers)."""

    def __init__(self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, group: str | None = None) -> None:
        # None of these is given back: tests make few.
        context = _made("SSL_CTX_new", _made("TLS_client_method"))
        for bound in (SET_MIN_PROTOCOL, SET_MAX_PROTOCOL):
            assert _LIBRARY.SSL_CTX_ctrl(context, bound, ctypes.c_long(version), None) == 1
        if group is not None:
            assert _LIBRARY.SSL_CTX_ctrl(context, SET_GROUPS_LIST, ctypes.c_long(0), group.encode()) == 1
        self._tls: Final = _made("SSL_new", context)
        self._in: Final = _made("BIO_new", _made("BIO_s_mem"))
        self._out: Final = _made("BIO_new", _made("BIO_s_mem"))
        _LIBRARY.SSL_set_bio(self._tls, self._in, self._out)
        _LIBRARY.SSL_set_connect_state(self._tls)

    def agrees(self) -> bool:
        """Go on with the handshake; whether it is at its end, for the client."""
        return bool(_LIBRARY.SSL_do_handshake(self._tls) == 1)

    def hear(self, data: bytes) -> None:
        """What came from the other side."""
        _LIBRARY.BIO_write(self._in, data, len(data))

    def change_keys(self, times: int) -> None:
        """One record each time (RFC 8446, section 4.6.3)."""
        for _ in range(times):
            assert _LIBRARY.SSL_key_update(self._tls, 0) == 1
            assert self.agrees()

    def write(self, data: bytes) -> None:
        """One record."""
        assert _LIBRARY.SSL_write(self._tls, data, len(data)) == len(data)

    def said(self) -> bytes:
        """What is to be sent."""
        buffer, found = ctypes.create_string_buffer(OUT_BYTES), b""
        while (count := _LIBRARY.BIO_read(self._out, buffer, OUT_BYTES)) > 0:
            found += buffer.raw[:count]
        return found
