"""Replicas that let nobody in who does not belong: real processes, real certificates, odd callers on bare sockets."""

import asyncio
import signal
import ssl
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from quorate.adts.log import Summary
from quorate.api_specs.limits import LEASE_S_MAX, LEASES_MAX
from quorate.api_specs.messages import Batch, Commit
from quorate.client_sdk import (
    ClientTls,
    LimitReached,
    OutcomeUnknown,
    RefusedByReplicas,
    Unavailable,
    connect,
    connect_async,
)
from quorate.replica.http.gate import DRAIN_BYTES_MAX
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make
from tests.support.certificates import Authority
from tests.system.guarded import GuardedCluster, Raw, new_token
from tests.system.in_vain import failure_of
from tests.unit.cli.conftest import TIMEOUT_S, quorate

ITEMS = "/v1/queues/q/items"
SENT_MAX = 300_000_000
TRIES = 20
"""On a busy machine a write may be sent again before its refusal has come: one copy is not answered then, and the outcome unknown."""
SOCKET_BYTES = 16_000_000
"""What the buffers of two sockets may hold at most, with room."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """Three replicas with TLS and tokens, whose command lines show what they were started with."""
    root = tmp_path_factory.mktemp("guarded")
    authority = Authority(root / "ca", "authority")
    with GuardedCluster(root, replicas=3, authority=authority, is_forked=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def writer(guarded: GuardedCluster) -> str:
    return token_in_force(guarded, "write")


def token_in_force(cluster: GuardedCluster, *scopes: str, name: str = "", objects: Sequence[str] = ()) -> str:
    """A new token that all replicas know already."""
    token = new_token(cluster.tokens, *scopes, name=name, objects=objects)
    for replica, url in cluster.document.urls.items():
        with cluster.client(token) as client:
            cluster.wait_for(
                lambda client=client, url=url: client.get(f"{url}/v1/status").status_code == 200, replica
            )
    return token


def command(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return quorate(*words, stdin="", cwd=None, timeout_s=TIMEOUT_S, **environment)


def names_in(audit: str, act: str) -> list[dict[str, object]]:
    lines = [line.partition("quorate.audit: ")[2] for line in audit.splitlines() if "quorate.audit: " in line]
    return [found for found in map(msgspec.json.decode, lines) if found["act"] == act]


def test_front_end_works_by_tls_with_a_token_and_sites_of_its_own(
    guarded: GuardedCluster, writer: str
) -> None:
    with connect(guarded.path, token=writer, tls=guarded.tls) as client:
        queue = client.queue("tls")
        queue.enqueue("x")
        assert queue.dequeue() == "x"
        client.register("r").write(1)
        assert client.register("r").compare_and_set(1, 2)
    scan = {"type": "scan", "prefix": "register/r"}
    with guarded.client(writer) as plain:
        batch = {"cluster": guarded.document.hash, "requests": [scan]}
        answers = [
            plain.post(f"{url}/replica/v1/batch", json=batch) for url in guarded.document.urls.values()
        ]
    shown = [each for answer in answers for each in answer.json()["replies"][0]["objects"]]
    promised = [found["status"]["promised"] for _, found in shown]
    assert sum(writer.split("_")[1] in each for each in promised) >= 2, "its turns bear the tag"


def test_one_token_holds_half_of_the_leases_however_it_asks(guarded: GuardedCluster) -> None:
    """By front ends of the SDK that come and go, and over HTTP at each replica; and another token is given some, then."""
    greedy, other = (token_in_force(guarded, "write", name=name) for name in ("greedy", "other"))
    held: list[str] = []
    with connect(guarded.path, token=greedy, tls=guarded.tls) as client:
        client.queue("shares").enqueue_many(list(range(1000)))
        held += [lease.token for lease in client.queue("shares").acquire(300, LEASE_S_MAX)]
    with guarded.client(greedy) as plain:
        asked = {"max": 300, "lease_s": LEASE_S_MAX}
        answers = [
            plain.post(f"{url}/v1/queues/shares/acquire", json=asked, timeout=TIMEOUT_S)
            for url in guarded.document.urls.values()
        ]
    held += [lease["token"] for answer in answers for lease in answer.json().get("leases", ())]
    answer = answers[-1]
    assert (answer.status_code, answer.json()["type"]) == (429, "/problems/too-many-leases")
    assert int(answer.headers["Retry-After"]) >= 1
    assert len(set(held)) == len(held) == LEASES_MAX // 2
    with connect(guarded.path, token=greedy, tls=guarded.tls) as client, pytest.raises(LimitReached):
        client.queue("shares").acquire()
    with guarded.client(other) as plain:
        answer = plain.post(f"{guarded.url}/v1/queues/shares/acquire", json={"max": 300}, timeout=TIMEOUT_S)
        assert len(answer.json()["leases"]) == LEASES_MAX // 4
    with connect(guarded.path, token=greedy, tls=guarded.tls) as client:
        client.queue("shares").ack(*held)


def test_document_is_fetched_by_tls_and_leads_nowhere_without(guarded: GuardedCluster, writer: str) -> None:
    with connect(guarded.url, token=writer, tls=guarded.tls) as client:
        assert client.register("nobody").read() is None


def test_certificate_of_another_authority_or_name_is_not_trusted(
    guarded: GuardedCluster, writer: str, tmp_path: Path
) -> None:
    stranger = ClientTls(str(Authority(tmp_path, "stranger").own.certificate))
    told = r"no connection by TLS: .*(verify failed|self-signed|unable to get)"
    with connect(guarded.path, token=writer, tls=stranger, deadline_s=2) as client:
        assert failure_of(lambda: client.register("r").write(1), Unavailable, words=told).definite
    port = guarded.url.rpartition(":")[2]
    elsewhere = {"r1": f"https://127.0.0.2:{port}"} | {
        name: f"https://127.0.0.2:{url.rpartition(':')[2]}" for name, url in guarded.document.urls.items()
    }
    with (
        connect(guarded.path, endpoints=elsewhere, token=writer, tls=guarded.tls, deadline_s=2) as client,
        pytest.raises(Unavailable),
    ):
        client.register("r").write(1)


def test_plain_http_is_not_answered_where_there_is_tls(guarded: GuardedCluster, writer: str) -> None:
    plain = {name: url.replace("https", "http") for name, url in guarded.document.urls.items()}
    with (
        connect(guarded.path, endpoints=plain, token=writer, deadline_s=1) as client,
        pytest.raises(Exception, match="r1"),
    ):
        client.register("r").read()


def refusal_of(write: Callable[[], None]) -> RefusedByReplicas:
    """How a write was refused, once each of its copies was."""
    for _ in range(TRIES):
        try:
            write()
        except RefusedByReplicas as error:
            return error
        except OutcomeUnknown:
            continue
        pytest.fail("it was done")
    pytest.fail("its outcome was unknown each time")


def test_reading_token_reads_and_does_not_write(guarded: GuardedCluster, writer: str) -> None:
    reader = token_in_force(guarded, "read", name="reader")
    with connect(guarded.path, token=writer, tls=guarded.tls) as client:
        client.register("seen").write("here")
    with connect(guarded.path, token=reader, tls=guarded.tls) as client:
        assert client.register("seen").read() == "here"
        refusal = refusal_of(lambda: client.register("seen").write(0))
        assert "scope write" in str(refusal)
        assert refusal.definite
        with pytest.raises(RefusedByReplicas, match="scope write"):
            client.queue("tls").dequeue()
    with guarded.client(reader) as plain:
        assert plain.get("/v1/registers/seen").json() == {"value": "here"}
        refused = plain.put("/v1/registers/seen", json={"value": 0})
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/forbidden")
        assert 'error="insufficient_scope", scope="write"' in refused.headers["www-authenticate"]
        announced = plain.post("/replica/v1/announcement", json={})
        assert announced.status_code == 403


def test_token_for_some_objects_is_refused_with_others(guarded: GuardedCluster, writer: str) -> None:
    """Also where a front end asks about both at once, and by a message of the replica protocol."""
    team = token_in_force(guarded, "write", name="team", objects=("queue/team.*", "dictionary/carts"))
    with connect(guarded.path, token=writer, tls=guarded.tls) as client:
        client.queue("others").enqueue("theirs")
        client.dictionary("carts2").put("ann", 1)

    async def both() -> list[Any]:
        async with connect_async(guarded.path, token=team, tls=guarded.tls, deadline_s=25.0) as client:
            queues = [client.queue(name) for name in ("team.a", "others", "team.b")]
            asked = [queue.enqueue("ours") for queue in queues] + [queues[1].dequeue(), queues[0].dequeue()]
            return await asyncio.gather(*asked, return_exceptions=True)

    told = asyncio.run(both())
    for _ in range(TRIES):
        if not isinstance(told[1], OutcomeUnknown):
            break
        told = asyncio.run(both())
    assert [isinstance(each, RefusedByReplicas) for each in told] == [False, True, False, True, False]
    assert told[4] == "ours"
    assert "the token is for queue/team.*, dictionary/carts, and not for queue/others" in str(told[1])
    with connect(guarded.path, token=team, tls=guarded.tls) as client:
        client.dictionary("carts").put("ann", ["book"])
        assert dict(client.dictionary("carts").items()) == {"ann": ["book"]}
        for refused in (client.dictionary("carts2").items, client.queue("others").size):
            with pytest.raises(RefusedByReplicas, match="and not for"):
                refused()
    ballot = make_ballot(make(1, 0, team[3:9]), 1)
    forged = Commit("queue/others", ballot, summary=Summary(horizon=make(9, 0, "x")))
    with guarded.client(team) as plain:
        body = msgspec.json.encode(Batch(guarded.document.hash, (forged,)))
        headers = {"Content-Type": "application/json"}
        answer = plain.post(f"{guarded.url}/replica/v1/batch", content=body, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")
        assert plain.get(f"{guarded.url}/v1/overview").status_code == 403
        assert plain.get(f"{guarded.url}/v1/queues/team.b").status_code == 200
    with connect(guarded.path, token=writer, tls=guarded.tls) as client:
        assert client.queue("others").dequeue() == "theirs"


def test_tokens_rotate_while_replicas_run(guarded: GuardedCluster) -> None:
    """Old and new are valid together; the old one ends when its line goes. No process is restarted."""
    old = token_in_force(guarded, "write", name="old")
    new = token_in_force(guarded, "write", name="new")
    pid = guarded.pid()
    with guarded.client(old) as before, guarded.client(new) as after:
        assert before.get("/v1/status").status_code == after.get("/v1/status").status_code == 200
        kept = [line for line in guarded.tokens.read_text().splitlines() if "name=old" not in line]
        guarded.tokens.write_text("\n".join(kept) + "\n")
        guarded.signal(signal.SIGHUP)
        guarded.wait_for(lambda: before.get("/v1/status").status_code == 401)
        assert after.get("/v1/status").status_code == 200
        assert after.get("/v1/admin/tokens").status_code == 403
    admin = token_in_force(guarded, "admin", name="admin")
    with guarded.client(admin) as client:
        valid = client.get("/v1/admin/tokens").json()["tokens"]
        assert {"new", "replicas"} <= {each["name"] for each in valid}
        assert "old" not in {each["name"] for each in valid}
        assert client.post("/v1/admin/tokens/read").json()["tokens"] == valid
        assert client.put("/v1/registers/a", json={"value": 1}).status_code == 403
    assert {"act": "tokens-asked", "by": "admin"} in names_in(guarded.log(), "tokens-asked")
    assert guarded.pid() == pid
    told = names_in(guarded.log(), "tokens-read")
    assert any(act["added"] == ["new"] for act in told)
    assert any(act["removed"] == ["old"] for act in told)


def test_list_that_cannot_be_used_leaves_the_one_before(guarded: GuardedCluster, writer: str) -> None:
    text = guarded.tokens.read_text()
    guarded.tokens.write_text(text + f"{writer}\n")
    guarded.signal(signal.SIGHUP)
    guarded.wait_for(lambda: "the tokens valid before stay valid" in guarded.log())
    with guarded.client(writer) as client:
        assert client.get("/v1/status").status_code == 200
    guarded.tokens.write_text(text)
    assert writer not in guarded.log(), "not even a line that holds a token is quoted"


def test_certificate_changes_while_the_replica_runs(guarded: GuardedCluster) -> None:
    assert guarded.authority is not None

    def serial() -> object:
        with Raw(guarded.url, guarded.tls.context()) as raw:
            assert isinstance(raw.socket, ssl.SSLSocket)
            told = raw.socket.getpeercert()
            assert told is not None
            return told["serialNumber"]

    before = serial()
    guarded.authority.signed("server")  # the same names of files
    guarded.signal(signal.SIGHUP)
    guarded.wait_for(lambda: serial() != before)
    assert names_in(guarded.log(), "certificate-read")


def test_no_secret_is_in_logs_process_lists_or_answers(guarded: GuardedCluster, writer: str) -> None:
    with guarded.client(writer) as client:
        told = client.get("/v1/status").text + client.get("/v1/cluster").text
    with guarded.client("qt_aaaaaa_" + "x" * 43) as client:
        told += client.get("/v1/status").text
    for replica in guarded.document.urls:
        told += guarded.log(replica) + Path(f"/proc/{guarded.pid(replica)}/cmdline").read_text()
    for secret in (writer, guarded.replica_token):
        assert secret not in told
        assert secret[-43:] not in told
    stored = guarded.tokens.read_text()
    assert writer[-43:] not in stored


def test_folders_and_files_are_for_their_owner_alone(guarded: GuardedCluster) -> None:
    for path in (guarded.root / "r1", *(guarded.root / "r1").iterdir(), guarded.tokens):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_stranger_is_heard_out_no_further_than_a_little(guarded: GuardedCluster) -> None:
    """Who has no token is told so before the body, and what comes nevertheless is not read to its end."""
    with Raw(guarded.url, guarded.tls.context()) as raw:
        raw.say(
            f"PUT /v1/registers/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {SENT_MAX}\r\n\r\n".encode()
        )
        sent = 0
        while sent < SENT_MAX and raw.say(b"x" * 100_000):
            sent += 100_000
        assert sent < DRAIN_BYTES_MAX + SOCKET_BYTES
        heard = raw.hear()
    assert not heard or heard.startswith(b"HTTP/1.1 401 ")
    with Raw(guarded.url, guarded.tls.context()) as raw:
        raw.say(
            f"PUT /v1/registers/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {SENT_MAX}\r\n\r\n".encode()
        )
        heard = raw.hear()
    assert heard.startswith(b"HTTP/1.1 401 "), "the answer comes before the body"
    assert b"connection: close" in heard.lower()


def test_commands_work_by_tls_and_with_tokens(guarded: GuardedCluster, writer: str) -> None:
    environment = guarded.environment(writer) | {"QUORATE_CLUSTER": str(guarded.path)}
    added = command(environment, "queue", "c", "enqueue", "1")
    assert added.returncode == 0, added.stderr
    told = command(environment, "status", "--cluster", guarded.url, "--json")
    assert told.returncode == 0, told.stdout + told.stderr
    traced = command(environment, "trace", "queue/c")
    assert traced.returncode == 0, traced.stderr
    assert "Enq" in traced.stdout
    environment.pop("QUORATE_TLS_CA")
    refused = command(environment, "queue", "c", "dequeue", "--deadline", "2")
    assert refused.returncode == 1
    assert "certificate" in refused.stderr


def test_mutual_tls_lets_in_those_with_a_certificate_alone(tmp_path: Path) -> None:
    authority, callers = Authority(tmp_path / "ca", "authority"), Authority(tmp_path / "callers", "callers")
    with GuardedCluster(tmp_path, replicas=3, authority=authority, mutual=callers) as cluster:
        token = token_in_force(cluster, "write")
        with connect(cluster.path, token=token, tls=cluster.tls) as client:
            client.queue("m").enqueue(1)
            assert client.queue("m").dequeue() == 1
        without = ClientTls(cluster.tls.ca)
        with (
            connect(cluster.path, token=token, tls=without, deadline_s=2) as client,
            pytest.raises(Unavailable),
        ):
            client.queue("m").peek()
        with (
            httpx.Client(verify=without.context(), trust_env=False) as stranger,
            pytest.raises(httpx.HTTPError),
        ):
            stranger.get(f"{cluster.url}/v1/health/live")
        (started,) = names_in(cluster.log(), "start")
        assert (started["tls"], started["mutual"]) == (True, True)
    assert names_in(cluster.log(), "stop")


def test_replica_does_not_start_where_its_settings_let_others_in(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        tokens, path = tmp_path / "tokens", tmp_path / "cluster.toml"
        token = new_token(tokens, "write")
        quorate("init", "--out", str(path), "--data-root", str(tmp_path / "data"))
    serve = ["serve", "--cluster", str(path), "--id", "r1", "--data", str(tmp_path / "data" / "r1")]

    def told(*words: str, **environment: str) -> str:
        done = command(environment, *serve, *words)
        assert done.returncode in (1, 2), done.stderr
        assert token not in done.stderr
        return done.stderr

    everywhere = ("--host", "0.0.0.0")
    assert "set a token" in told(*everywhere)
    assert "in the clear" in told(*everywhere, QUORATE_TOKEN="t")
    assert "of scope replica" in told(QUORATE_TOKENS_FILE=str(tokens))
    assert "not of scope replica" in told(QUORATE_TOKENS_FILE=str(tokens), QUORATE_TOKEN=token)
    assert "keep one" in told(QUORATE_TOKENS_FILE=str(tokens), QUORATE_TOKENS="x", QUORATE_TOKEN=token)
    assert "write https:// there" in told("--tls-cert", "x", "--tls-key", "y")
    assert "go" in told("--tls-cert", "x")
    assert "beyond ASCII" in told(QUORATE_TOKEN="ümlaut")
    two = tmp_path / "two"
    two.write_bytes(b"one\r\ntwo\n")
    assert "more than one line" in told(QUORATE_TOKEN_FILE=str(two))
    two.write_bytes(b"\xff\xfe\x00")
    assert "no text" in told(QUORATE_TOKEN_FILE=str(two))
    tokens.chmod(0o666)
    assert "chmod 600" in told(QUORATE_TOKENS_FILE=str(tokens), QUORATE_TOKEN=token)
