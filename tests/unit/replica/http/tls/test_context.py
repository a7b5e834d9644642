"""The files of a replica's certificate: when they are read again."""

import os
import shutil
import ssl
from pathlib import Path

import pytest

from quorate.replica.http.tls.context import BadTls, ServerContext, ServerTls
from tests.support.certificates import Authority
from tests.support.openssl_client import OpensslClient


def test_chmod_alone_mends_a_key_that_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "authority")
    own, renewed = authority.signed("own"), authority.signed("renewed")
    context = ServerContext(ServerTls(str(own.certificate), str(own.key)))
    assert not context.look()
    os.replace(renewed.certificate, own.certificate)
    os.replace(renewed.key, own.key)
    own.key.chmod(0o000)
    with monkeypatch.context() as patch:  # Modes do not bind whoever runs tests as root.
        patch.setattr("quorate.replica.http.tls.context.load_own", lambda *_: "permission denied")
        with pytest.raises(BadTls):
            context.look()
        assert not context.look(), "one line of the log for one mistake"
    own.key.chmod(0o600)
    assert context.look()


def is_let_in(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Whether the two agree, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    )
    return not any(refuses(side) for _ in range(6) for side in sides)


def refuses(side: ssl.SSLObject) -> bool:
    """Go on with a handshake: whether this side ends it."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        return True
    return False


def caller(authority: Authority, trusted: Authority) -> ssl.SSLContext:
    own = authority.signed("caller")
    context = ssl.create_default_context(cafile=str(trusted.own.certificate))
    context.load_cert_chain(own.certificate, own.key)
    return context


def test_another_authority_of_callers_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """Else one whose key is lost could not be taken out of a replica that runs."""
    ours, before, after = (Authority(tmp_path / name, name) for name in ("ours", "before", "after"))
    own, trusted = ours.signed("own"), tmp_path / "callers.pem"
    shutil.copy(before.own.certificate, trusted)
    context = ServerContext(ServerTls(str(own.certificate), str(own.key), str(trusted)))
    old, new = caller(before, ours), caller(after, ours)
    assert [is_let_in(context.context, each) for each in (old, new)] == [True, False]
    shutil.copy(after.own.certificate, trusted)
    assert context.look()
    assert [is_let_in(context.context, each) for each in (old, new)] == [False, True]


def test_pipe_in_place_of_a_file_is_waited_for_by_nobody(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours", "ours")
    own, callers = ours.signed("own"), tmp_path / "callers.pem"
    shutil.copy(ours.own.certificate, callers)
    context = ServerContext(ServerTls(str(own.certificate), str(own.key), str(callers)))
    for path in (Path(own.certificate), Path(own.key), callers):
        kept = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(BadTls, match=f"{path} is not a regular file"):
            context.look()
        path.unlink()
        path.write_bytes(kept)


def is_let_in_asking(server: ssl.SSLContext, version: ssl.TLSVersion, group: str | None) -> bool:
    """Whether the two agree where the client offers this group only."""
    client = OpensslClient(version, group)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = server.wrap_bio(to_server, to_client, server_side=True)
    is_agreed = False
    for _ in range(6):
        is_agreed = client.agrees()
        to_server.write(client.said())
        if refuses(side):
            return False
        client.hear(to_client.read())
    return is_agreed


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_nobody_makes_a_replica_reckon_with_large_keys(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """Each handshake with ffdhe8192 took a tenth of a second from all callers; it needs no token, nor a certificate. With TLS 1.2 OpenSSL
    refuses by itself who offers no group of the certificate's."""
    own = Authority(tmp_path / "ours", "ours").signed("own")
    context = ServerContext(ServerTls(str(own.certificate), str(own.key))).context
    assert is_let_in_asking(context, version, None), "what a client asks for unless told otherwise"
    assert is_let_in_asking(context, version, "prime256v1")
    large = ["ffdhe2048", "ffdhe8192", "secp521r1"]
    assert [is_let_in_asking(context, version, group) for group in large] == [False] * 3
