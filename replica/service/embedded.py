"""The replica's own front end: its own replica is a call away, the others are reached over HTTP.

Owns the choice between the two. Everything else of a front end is the SDK's.
"""

import asyncio
import secrets
from functools import partial
from typing import Final

from ...api_specs.checking import BadBatch, Checked, check_batch
from ...api_specs.cluster import BadCluster as BadDocument
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Batch, BatchReply
from ...api_specs.weights import carried_bytes
from ...client_sdk.errors import BadCluster
from ...client_sdk.protocol.core.values import Unanswered
from ...client_sdk.transport.driver import Driver, new_site
from ...client_sdk.transport.following import Following, NotNow
from ...client_sdk.transport.http_transport import HttpTransport
from ...client_sdk.transport.ports import Done, GiveUp, Transport, post_task
from ...client_sdk.transport.tls import SYSTEM_TRUST, ClientTls
from ..store.group_commit import Overloaded
from ..store.store import StorageFailed
from .configured import WrongCluster
from .member import Member, Starting, StoreLost

LARGE_BYTES: Final = 65_536
"""Of values; more are checked in a thread."""


class EmbeddedTransport(Transport):
    """Carries batches to `member` in this process, checked as those that come over HTTP, and to all other replicas through
    `others`."""

    def __init__(self, member: Member, others: Transport) -> None:
        self._member: Final = member
        self._others: Final = others

    def post(
        self, replica: str, batch: Batch, timeout_s: float, done: Done[BatchReply | Unanswered]
    ) -> GiveUp:
        if replica != self._member.id:
            return self._others.post(replica, batch, timeout_s, done)
        return post_task(self._answer(replica, batch, timeout_s), done)

    async def _answer(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        try:
            found = await self._checked(batch)
            async with asyncio.timeout(timeout_s):
                return found.whole(await self._member.answer(found.sound))
        except BadBatch as error:
            return Unanswered(f"{replica}: {error}", refused=True, definite=True)
        except WrongCluster as error:
            return Unanswered(f"{replica}: {error}", definite=True, epoch=error.epoch)
        except TimeoutError:
            return Unanswered(f"{replica}: no answer in time")
        except (StoreLost, Starting, Overloaded) as error:
            return Unanswered(f"{replica}: {error}", definite=True)
        except StorageFailed as error:
            return Unanswered(f"{replica}: {error}")

    async def _checked(self, batch: Batch) -> Checked:
        """In a thread where it has large values: Python lets the event loop go on between one and the next."""
        limits = self._member.document.limits
        if sum(map(carried_bytes, batch.requests)) <= LARGE_BYTES:
            return check_batch(batch, limits)
        return await asyncio.to_thread(check_batch, batch, limits)

    def follow(self, document: ClusterDocument) -> None:
        """The way to the others follows by itself: see `to_others`."""

    async def aclose(self) -> None:
        await self._others.aclose()


def embedded_front_end(member: Member, token: str | None, tls: ClientTls = SYSTEM_TRUST) -> Driver:
    """A front end for `member`, on the running event loop; `token` is what it sends to the other replicas."""
    others = to_others(member, token, tls)
    driver = Driver(
        member.document,
        transport=EmbeddedTransport(member, others),
        forwarder=others,
        site=new_site(token),
        seed=secrets.randbits(63),
        own=member.id,
        clock=member,
    )
    driver.following = Following(
        member.document.name,
        others.configuration,
        partial(_follow, member),
        member.configured.disbelieve,
    )
    member.configured.hear_of_later = driver.following.hear
    member.configured.followers.append(driver.reconfigure)
    if member.traces is not None:
        driver.follow(member.traces.operations())
    return driver


async def _follow(member: Member, told: ClusterDocument) -> None:
    """Raises BadCluster where it is none that the replica could go on to, NotNow where it cannot just now."""
    try:
        await member.configured.follow(told)
    except BadDocument as error:
        raise BadCluster(str(error)) from None
    except (StoreLost, Overloaded, StorageFailed) as error:
        raise NotNow(str(error)) from None


def to_others(member: Member, token: str | None, tls: ClientTls = SYSTEM_TRUST) -> HttpTransport:
    """HTTP to the other replicas, from the running event loop; also to those that become members later."""
    limits = member.document.limits
    transport = HttpTransport(
        member.document.urls,
        endpoints=member.endpoints,
        token=token,
        body_bytes_max=limits.message_bytes_max,
        tls=tls,
    )
    member.configured.followers.append(transport.follow)
    return transport
