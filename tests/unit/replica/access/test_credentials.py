"""Lists of tokens, and what a header proves against them."""

import os
from pathlib import Path

import pytest

from quorate.api_specs.tokens import digest_of, make_token
from quorate.replica.access.credentials import Credential, TokenList, parse_tokens, plain_token
from quorate.replica.access.rate import Bucket
from quorate.replica.access.token_list import BadTokens, from_file, from_text, nobody_asked, one_token

WRITER, READER, OLD = make_token("writer", "w" * 43), make_token("reader", "r" * 43), "an-old-token"


def line(token: str, scopes: str, **words: str) -> str:
    parts = {"scopes": scopes, "sha256": digest_of(token.encode()).hex()} | words
    return " ".join(f"{name}={value}" for name, value in parts.items())


def listed() -> TokenList:
    lines = [
        "# callers",
        "",
        line(WRITER, "write", tag="writer", name="shop"),
        line(READER, "read", tag="reader"),
    ]
    return parse_tokens("\n".join([*lines, line(OLD, "write,admin")]), "tokens")


def found(known: TokenList, header: str) -> Credential | None:
    return known.find(header.encode())


def test_several_tokens_are_valid_at_once_each_with_its_scopes() -> None:
    known = listed()
    for token, scopes in ((WRITER, {"read", "write"}), (READER, {"read"}), (OLD, {"read", "write", "admin"})):
        credential = found(known, f"Bearer {token}")
        assert credential is not None
        assert credential.scopes == scopes


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer "])
def test_scheme_is_known_in_any_case(scheme: str) -> None:
    assert found(listed(), f"{scheme} {WRITER}") is not None


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        WRITER,
        f"Basic {WRITER}",
        f"Bearer {WRITER}x",
        f"Bearer {WRITER[:-1]}",
        f"Bearer {make_token('writer', 'r' * 43)}",
        f"Bearer {make_token('nobody', 'w' * 43)}",
        f"Bearer {OLD.upper()}",
        f"Bearer {digest_of(WRITER.encode()).hex()}",
        f"Bearer {'x' * 100_000}",
    ],
)
def test_nothing_else_proves_anything(header: str) -> None:
    assert found(listed(), header) is None


def test_list_holds_digests_and_its_words_no_secret() -> None:
    shown = repr(listed().credentials) + repr(one_token(OLD)) + repr(listed().__dict__)
    for secret in (WRITER, READER, OLD, "w" * 43):
        assert secret not in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no token"),
        ("# nothing\n", "lists no token"),
        (WRITER, "line 1: a line is made of"),
        ("\n" + line(WRITER, "write").replace("sha256", "sha512"), "line 2"),
        (line(WRITER, "write")[:-1], "sha256="),
        (line(WRITER, "write").upper(), "line 1"),
        (line(WRITER, "root"), "scopes="),
        (line(WRITER, ""), "scopes="),
        (line(WRITER, "read", tag="TOOBIG"), "tag="),
        (line(WRITER, "read", name="a/b"), "name="),
        (line(WRITER, "read", rate="0"), "rate="),
        (line(WRITER, "read", rate="999999"), "rate="),
        (line(WRITER, "read", rate="²"), "rate="),
        (line(WRITER, "read") + "\n" + line(WRITER, "write"), "same sha256"),
        (line(WRITER, "read", tag="writer") + "\n" + line(READER, "read", tag="writer"), "same tag"),
        (line(WRITER, "read") + " scopes=write", "each once"),
        (line(WRITER, "read") + " objects=", "objects="),
        (line(WRITER, "read") + " objects=shop", "objects="),
        (line(WRITER, "read") + " objects=queue/a,", "objects="),
        (line(WRITER, "read") + " objects=queue/a/b", "objects="),
        (line(WRITER, "read") + " objects=" + ",".join(["queue/a"] * 17), "objects="),
        (line(WRITER, "admin") + " objects=queue/a", "for the whole cluster"),
        (line(WRITER, "write") + " via=sdk", "via= must be http"),
        (line(WRITER, "replica") + " via=http", "not for replicas"),
        (line(WRITER, "replica,write") + " objects=queue/a", "for the whole cluster"),
    ],
)
def test_list_that_is_wrong_is_refused_with_the_place_and_without_its_text(text: str, words: str) -> None:
    with pytest.raises(BadTokens, match=words) as caught:
        parse_tokens(text, "tokens")
    assert str(caught.value).startswith("tokens")
    assert WRITER not in str(caught.value)
    assert digest_of(WRITER.encode()).hex() not in str(caught.value)


def test_sites_belong_to_one_credential_alone() -> None:
    known = listed()
    writer, reader, old = (found(known, f"Bearer {each}") for each in (WRITER, READER, OLD))
    assert writer is not None
    assert reader is not None
    assert old is not None
    assert not known.is_foreign(writer, "writer0123456789")
    assert known.is_foreign(writer, "reader0123456789")
    assert known.is_foreign(writer, "0123456789abc")
    assert known.is_foreign(old, "writer0123456789")
    assert not known.is_foreign(old, "0123456789abc")


def test_unchanged_credential_goes_on_counting() -> None:
    before = listed()
    after = parse_tokens(line(WRITER, "write", tag="writer", name="shop"), "tokens", before)
    assert found(after, f"Bearer {WRITER}") is found(before, f"Bearer {WRITER}")
    changed = parse_tokens(line(WRITER, "read", tag="writer", name="shop"), "tokens", before)
    assert found(changed, f"Bearer {WRITER}") is not found(before, f"Bearer {WRITER}")


def test_file_is_read_again_when_it_changes_and_kept_when_it_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    path = tmp_path / "tokens"
    path.write_text(line(WRITER, "replica", tag="writer", name="first"))
    path.chmod(0o600)
    access = from_file(path, WRITER)
    assert access.own_problem() is None
    access.look()
    assert not caplog.records, "nothing changed"
    new = tmp_path / "new"
    new.write_text(line(READER, "read", tag="reader", name="second"))
    new.chmod(0o600)
    os.replace(new, path)
    access.look()
    assert access.find(f"Bearer {WRITER}".encode()) is None
    assert access.find(f"Bearer {READER}".encode()) is not None
    assert '"added":["second"],"removed":["first"]' in caplog.text
    path.write_text("half a li")
    access.look()
    path.unlink()
    access.look()
    path.write_text(line(WRITER, "read"))
    path.chmod(0o620)
    access.look()
    assert "can be written by other users" in caplog.text
    assert access.find(f"Bearer {READER}".encode()) is not None
    assert caplog.text.count("stay valid") == 3


def list_in(folder: Path) -> Path:
    """A list of tokens with the writer's."""
    path = folder / "tokens"
    path.write_text(line(WRITER, "replica"))
    path.chmod(0o600)
    return path


def test_chmod_alone_mends_a_list_that_was_refused_for_its_mode(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = list_in(tmp_path)
    access = from_file(path, WRITER)
    path.write_text(line(READER, "read"))
    path.chmod(0o666)
    access.look()
    assert f"chmod 600 {path}" in caplog.text
    assert access.find(f"Bearer {READER}".encode()) is None
    path.chmod(0o600)
    access.look()
    assert access.find(f"Bearer {READER}".encode()) is not None


def test_pipe_in_place_of_the_list_is_waited_for_by_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody writes to it: to open it, as one opens a file, would hold the event loop for good."""
    path = list_in(tmp_path)
    access = from_file(path, WRITER)
    path.unlink()
    os.mkfifo(path, 0o600)
    access.look()
    assert f"{path} is not a regular file" in caplog.text
    assert access.find(f"Bearer {WRITER}".encode()) is not None


def test_change_while_the_file_is_first_read_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = list_in(tmp_path)

    def parsed_late(text: str, source: str) -> TokenList:
        path.write_text(line(READER, "read"))
        return parse_tokens(text, source)

    with monkeypatch.context() as patch:
        patch.setattr("quorate.replica.access.token_list.parse_tokens", parsed_late)
        access = from_file(path, WRITER)
    access.look()
    assert access.find(f"Bearer {WRITER}".encode()) is None
    assert access.find(f"Bearer {READER}".encode()) is not None


def test_where_no_token_is_asked_for_anyone_may_do_everything() -> None:
    access = nobody_asked()
    assert access.is_open
    assert access.own_problem() is None
    anyone = access.find(b"")
    assert anyone is not None
    assert anyone.scopes == {"read", "write", "admin", "replica"}
    plain = plain_token("t").find(b"Bearer t")
    assert plain is not None
    assert plain.scopes == anyone.scopes


def test_text_of_the_environment_may_part_its_lines_by_semicolons() -> None:
    access = from_text(f"{line(WRITER, 'replica', tag='writer')};{line(READER, 'read')}", WRITER)
    assert access.find(f"Bearer {READER}".encode()) is not None
    assert access.own_problem() is None
    assert from_text(line(READER, "read"), None).own_problem() is not None


def test_bucket_lets_through_its_rate_and_twice_as_many_at_once() -> None:
    bucket = Bucket(10.0)
    assert sum(bucket.takes(100.0) for _ in range(50)) == 20
    assert bucket.wait_s == 1
    assert sum(bucket.takes(101.0) for _ in range(50)) == 10
    assert sum(bucket.takes(101.0 + n / 100) for n in range(1, 101)) == 10
    assert bucket.charge(30)
    assert not bucket.charge(30), (
        "what came beside it, and was let through before it counted, finds nothing left"
    )
    assert bucket.wait_s == 4
    assert not bucket.takes(104.9)
    assert bucket.takes(105.2)
    slow = Bucket(1.0)
    assert [slow.takes(0.0) for _ in range(3)] == [True, True, False]
    assert slow.wait_s == 1
