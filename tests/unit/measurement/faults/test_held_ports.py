"""A held port is nobody else's, is refused to callers, and is its server's, again and again."""

import socket
import sys
from pathlib import Path

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.measurement.faults.held_ports import LOCAL, HeldPort, is_free
from quorate.measurement.faults.proxy import Proxy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere two sockets cannot share a port")


def listens(number: int) -> bool:
    """Whether a server, which sets SO_REUSEADDR as all do, could listen on the port."""
    with socket.create_server((LOCAL, number)):
        return True


def somebody_takes(number: int) -> bool:
    """Whether a program that has no business there gets the port: as an outgoing connection would, without SO_REUSEADDR."""
    with socket.socket() as other:
        try:
            other.bind((LOCAL, number))
        except OSError:
            return False
        return True


def test_a_chosen_port_is_nobody_elses_and_its_servers_again_and_again() -> None:
    held = HeldPort.chosen()
    for _ in range(2):
        assert not somebody_takes(held.number)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOCAL, held.number))
        assert listens(held.number)
    held.release()
    assert somebody_takes(held.number)


def test_no_two_choices_are_the_same() -> None:
    held = HeldPort.chosen()
    with pytest.raises(OSError, match="None of many ports"):
        HeldPort.chosen([held.number])
    other = HeldPort.chosen([held.number, *range(held.number + 1, held.number + 50)])
    assert other.number != held.number


def test_a_port_that_was_named_is_shared_with_those_who_name_it_until_somebody_listens() -> None:
    """So `quorate up --ports` takes what whoever calls it holds for it."""
    held = HeldPort.chosen()
    again = HeldPort.named(held.number)
    assert again.number == held.number
    assert is_free(held.number)
    with socket.create_server((LOCAL, held.number)):
        assert not is_free(held.number)
        with pytest.raises(OSError, match="in use"):
            HeldPort.named(held.number)


def test_a_port_is_let_go_when_nobody_refers_to_it() -> None:
    number = HeldPort.chosen().number
    assert somebody_takes(number)


def test_ports_of_replicas_are_held_before_they_start(tmp_path: Path) -> None:
    """What is chosen here and bound by a process later was anybody's in between."""
    cluster = LocalCluster.create(tmp_path)
    ports = [int(url.rpartition(":")[2]) for url in cluster.urls.values()]
    assert not any(map(somebody_takes, ports))
    del cluster
    assert all(map(somebody_takes, ports))


async def test_a_proxy_keeps_its_port_while_it_refuses() -> None:
    async with Proxy("http://127.0.0.1:9") as proxy:
        port = int(proxy.url.rpartition(":")[2])
        await proxy.refuse()
        assert not somebody_takes(port)
        await proxy.listen()
    assert somebody_takes(port)
