"""Requests to a member in this process, as a front end that goes by its configuration sends them."""

from collections.abc import Sequence

from quorate.api_specs.messages import Batch, BatchReply, Request
from quorate.replica.service.member import Member


async def answer_of(member: Member, requests: Sequence[Request]) -> BatchReply:
    """Its reply to the batch."""
    return await member.answer(Batch(member.document.hash, tuple(requests)))
