"""The files of a replica's certificate: when they are read again."""

import os
from pathlib import Path

import pytest

from quorate.replica.http.server_tls import BadTls, ServerContext, ServerTls
from tests.support.certificates import Authority


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
        patch.setattr("quorate.replica.http.server_tls.load_own", lambda *_: "permission denied")
        with pytest.raises(BadTls):
            context.look()
        assert not context.look(), "one line of the log for one mistake"
    own.key.chmod(0o600)
    assert context.look()
