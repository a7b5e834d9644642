"""The endpoint at which Prometheus asks for metrics. Owns the path; what is told is the business of `metrics`."""

from typing import Final

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from ..http.routers import tagged
from .metrics import CONTENT_TYPE, Metrics

PATH: Final = "/metrics"
_EXAMPLE: Final = """\
# HELP quorate_ready 1 when the replica votes, else 0.
# TYPE quorate_ready gauge
quorate_ready 1.0
"""


def metrics_router(metrics: Metrics) -> APIRouter:
    """The endpoint."""
    router, content = tagged("service"), {"text/plain": {"example": _EXAMPLE}}

    @router.get(PATH, response_class=PlainTextResponse, responses={200: {"content": content}})
    async def get_metrics() -> Response:
        """What the replica has counted and measured, in the text format of Prometheus (docs/reference/metrics.md)."""
        return Response(await metrics.text(), media_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})

    return router
