"""What is made of broker URLs, TLS and transport options, as real connections of Kombu carry them."""

import ssl
from typing import Any

import pytest
from kombu import Connection

from quorate.client_sdk import BadInput, ClientTls
from quorate.integrations import kombu_transport
from quorate.integrations.broker_address import LEASE_S, POLLING_S, PUBLISH_S, address_of, shown

TOKEN = "qt_abcdef_secret"


def of(url: str, **settings: Any) -> Any:
    return address_of(Connection(url, **settings))


@pytest.mark.parametrize(
    ("url", "cluster"),
    [
        ("quorate+http://127.0.0.1:8001", "http://127.0.0.1:8001"),
        ("quorate+http://127.0.0.1:8001//", "http://127.0.0.1:8001"),
        ("quorate+https://r1.example:8001", "https://r1.example:8001"),
        ("quorate://My-Cluster/cluster.toml", "My-Cluster/cluster.toml"),
        ("quorate:///srv/jobs@home/cluster.toml", "/srv/jobs@home/cluster.toml"),
    ],
)
def test_a_broker_url_leads_to_a_replica_or_a_document(url: str, cluster: str) -> None:
    connection = Connection(url)
    assert address_of(connection).cluster == cluster
    assert address_of(connection.clone()).cluster == cluster
    assert connection.as_uri().rstrip("/") == url.rstrip("/")


def test_of_several_urls_each_is_right_in_its_turn() -> None:
    connection = Connection("quorate+http://127.0.0.1:8001;quorate+https://r2.example:8002")
    assert address_of(connection).cluster == "http://127.0.0.1:8001"
    for cluster in ("https://r2.example:8002", "http://127.0.0.1:8001"):
        connection.maybe_switch_next()
        assert address_of(connection).cluster == cluster
        assert shown(connection) == f"quorate+{cluster}"


def test_what_is_left_out_has_a_default() -> None:
    found = of("quorate+http://127.0.0.1:8001")
    assert (found.token, found.tls, found.endpoints, found.max_deliveries) == (None, None, {}, None)
    assert (found.lease_s, found.polling_s, found.publish_s) == (LEASE_S, POLLING_S, PUBLISH_S)
    patient = of("quorate+http://127.0.0.1:8001", transport_options={"deadline_s": PUBLISH_S + 1})
    assert patient.publish_s == PUBLISH_S + 1, "adding a message is tried for as long as all else, or longer"


def test_options_are_taken_over() -> None:
    options: dict[str, Any] = {
        "token": TOKEN,
        "lease_s": 7,
        "polling_interval": 0.5,
        "deadline_s": 2,
        "max_deliveries": 3,
    }
    options["publish_s"] = 1
    found = of("quorate+http://127.0.0.1:8001", transport_options=options)
    assert (found.token, found.lease_s, found.polling_s) == (TOKEN, 7.0, 0.5)
    assert (found.deadline_s, found.publish_s, found.max_deliveries) == (2.0, 1.0, 3)
    assert TOKEN not in repr(found)


def test_options_of_kombu_itself_are_left_to_it() -> None:
    of("quorate+http://127.0.0.1:8001", transport_options={"max_retries": 3, "interval_start": 0})


def test_celerys_files_for_tls_are_taken_over() -> None:
    files = {"ca_certs": "ca.pem", "certfile": "me.pem", "keyfile": "me.key", "cert_reqs": ssl.CERT_REQUIRED}
    found = of("quorate+https://127.0.0.1:8001", ssl=files)
    assert found.tls == ClientTls("ca.pem", "me.pem", "me.key")
    assert of("quorate+https://127.0.0.1:8001", ssl=True).tls == ClientTls()


@pytest.mark.parametrize(
    ("url", "settings", "said"),
    [
        ("quorate+ftp://127.0.0.1", {}, "quorate+ftp://127.0.0.1: use quorate+http://HOST:PORT"),
        ("quorate://", {}, "use quorate+http://HOST:PORT"),
        ("quorate://127.0.0.1:8001", {}, "for a replica write quorate+http://127.0.0.1:8001"),
        ("quorate://r1.example:8001//", {}, "for a replica write quorate+http://r1.example:8001"),
        (
            f"quorate+http://me:{TOKEN}@127.0.0.1:8001",
            {},
            "{'token': …}",
        ),
        ("quorate+http://h:1", {"transport_options": {"visibility_timeout": 9}}, "leave it out: leases"),
        (
            "quorate+http://h:1",
            {"transport_options": {"tokn": TOKEN}},
            "unknown tokn: use deadline_s, endpoints",
        ),
        ("quorate+http://h:1", {"transport_options": {"token": b"x"}}, "token must be text"),
        ("quorate+http://h:1", {"transport_options": {"lease_s": 0}}, "lease_s is 0: use a number"),
        ("quorate+http://h:1", {"transport_options": {"lease_s": "9"}}, "lease_s is '9': use a number"),
        (
            "quorate+http://h:1",
            {"transport_options": {"max_deliveries": 0}},
            "max_deliveries is 0: use a whole",
        ),
        ("quorate+http://h:1", {"ssl": True}, "write quorate+https://"),
        ("quorate+https://h:1", {"ssl": {"cert_reqs": ssl.CERT_NONE}}, "certificates are always checked"),
        ("quorate+https://h:1", {"ssl": {"ca": "x"}}, "unknown ca: use ca_certs, certfile, keyfile"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_remedy(
    url: str, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        of(url, **settings)
    assert said in str(refusal.value)
    assert TOKEN not in str(refusal.value)


def test_kombu_knows_the_urls_once_the_module_is_imported() -> None:
    assert Connection("quorate+http://h:1").get_transport_cls() is kombu_transport.Transport
    assert Connection("quorate://a.toml").get_transport_cls() is kombu_transport.Transport
