"""Asks in a world: from one front end to the one embedded in a replica, and back.

Owns what a real driver and a real server do around the two: carrying once, serving once at most, the time-out. It must not
know what commands mean.
"""

from functools import partial
from typing import TYPE_CHECKING

from msgspec import msgpack

from ...api_specs.checking import check_forwarded
from ...api_specs.messages import Denied, ForwardedReply, ForwardedRequest, Granted
from ...client_sdk.protocol.core.values import Outcome, SendForwarded, Serve, Unanswered
from ...replica.protocol.at_most_once import result_of
from ...timestamps.clock import Now

if TYPE_CHECKING:
    from .nodes import FrontNode, ReplicaNode

_decode_forwarded = msgpack.Decoder(ForwardedRequest).decode
_decode_reply = msgpack.Decoder(ForwardedReply).decode


class ForwardedUnderWay:
    """One ask on its way and back: answered once, with the answer or with its absence."""

    __slots__ = ("front", "is_done", "is_doubled", "send")

    def __init__(self, front: "FrontNode", send: SendForwarded) -> None:
        self.front = front
        self.send = send
        self.is_done = False
        self.is_doubled = False


def send_forwarded(front: "FrontNode", send: SendForwarded, node: "ReplicaNode") -> None:
    """The forwarded request starts on its way; when its time is over, it counts as unanswered."""
    world = front.world
    world.trace(
        front.name, lambda: f"asks {send.replica} about {send.request.object}: {send.request.commands}"
    )
    under_way = ForwardedUnderWay(front, send)
    network, link = world.network, (front.address, node.id)
    under_way.is_doubled = network.is_doubled()
    for _ in range(1 + under_way.is_doubled):
        delay_us = network.delay_us(*link)
        if delay_us is not None:
            world.carry(link, delay_us, _arrive, under_way, node)
    world.later(int(send.timeout_s * 1e6), _answer, under_way, Unanswered("no answer in time"))


def _arrive(under_way: ForwardedUnderWay, node: "ReplicaNode") -> None:
    world = node.world
    if not node.is_up:
        is_definite = not under_way.is_doubled and world.chance() < 0.5
        world.later(1_000, _answer, under_way, Unanswered("connection refused", definite=is_definite))
        return
    for process in (node, node.front):
        if process is not None and process.is_stopped:
            process.hold(_arrive, under_way, node)
            return
    ask = under_way.send.request
    if world.has_codec:
        ask = _decode_forwarded(msgpack.encode(ask))
    check_forwarded(ask, world.document.limits, world.document.specifications)
    Serving(under_way, node, ask).begin()


class Serving:
    """What `quorate.replica.api.forwarded` does, in virtual time."""

    def __init__(self, under_way: ForwardedUnderWay, node: "ReplicaNode", ask: ForwardedRequest) -> None:
        self._under_way = under_way
        self._node = node
        self._ask = ask
        self._results: dict[int, Granted | Denied] = {}
        self._is_shared = False

    def begin(self) -> None:
        """Start to serve, or refuse."""
        node, ask, count = self._node, self._ask, len(self._ask.commands)
        if not ask.commands:
            self._reply(())
            return
        if node.asks.is_stuck(node.replica.incarnation, node.wall_us):
            node.replica.take_another_incarnation()
            self._count("incarnations taken anew")
        if (problem := node.asks.problem(ask, node.replica.incarnation, node.wall_us)) is not None:
            self._count("asks not admitted")
            self._reply((Denied(problem),) * count)
            return
        self._is_shared = node.asks.is_shared(ask, node.world.now_us / 1e6)
        front = node.front
        if front is None or not node.asks.begin(count):
            self._reply((Denied("no front end here serves it", definite=True),) * count)
            return
        node.world.trace(node.id, lambda: f"serves {ask.commands} with {front.name}")
        for place, command in enumerate(ask.commands):
            if front.is_alive:
                front.start(Serve(ask.object, command), ask.deadline_s, partial(self._end, place))

    def _count(self, what: str) -> None:
        counters = self._node.world.counters
        counters[what] = counters.get(what, 0) + 1

    def _end(self, place: int, outcome: Outcome) -> None:
        self._results[place] = result_of(outcome)
        if len(self._results) == len(self._ask.commands):
            self._node.asks.end(len(self._ask.commands))
            self._reply(tuple(result for _, result in sorted(self._results.items())))

    def _reply(self, results: tuple[Granted | Denied, ...]) -> None:
        served = ForwardedReply(self._node.id, self._node.replica.incarnation, results, self._is_shared)
        world, front = self._node.world, self._under_way.front
        if world.has_codec:
            served = _decode_reply(msgpack.encode(served))
        link = self._node.id, front.address
        if (delay_us := world.network.delay_us(*link)) is not None:
            world.carry(link, delay_us, _answer, self._under_way, served)


def _answer(under_way: ForwardedUnderWay, answer: ForwardedReply | Unanswered) -> None:
    front = under_way.front
    if under_way.is_done or not front.is_alive:
        return
    if front.is_stopped:
        front.hold(_answer, under_way, answer)
        return
    under_way.is_done = True
    front.world.trace(front.name, lambda: f"has asked {under_way.send.replica}: {answer}")
    now: Now = front.now
    front.obey(front.machine.take_forwarded_reply(under_way.send.token, answer, now))
