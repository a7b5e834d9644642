"""The endpoint at which Prometheus asks for metrics. Owns the path; what is told is the business of `metrics`."""

from typing import Annotated, Final

from fastapi import Query
from starlette.responses import PlainTextResponse, Response

from ..http.routers import AS_DIGITS, of_application, tagged
from ..store.survey import TOLD_MAX
from .metrics import CONTENT_TYPE, Metrics

PATH: Final = "/metrics"
_EXAMPLE: Final = """\
# HELP quorate_ready 1 when the replica votes, else 0.
# TYPE quorate_ready gauge
quorate_ready 1.0
"""


metrics_router: Final = tagged("service")
"""The endpoint."""


@metrics_router.get(
    PATH,
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": _EXAMPLE}}}},
)
async def get_metrics(
    metrics: Annotated[Metrics, of_application("metrics")],
    queues: Annotated[
        int,
        Query(ge=0, le=TOLD_MAX, description="Also of so many single queues, by name", examples=[20]),
        AS_DIGITS,
    ] = 0,
) -> Response:
    """What the replica has counted and measured, in the text format of Prometheus (docs/reference/metrics.md)."""
    return Response(
        await metrics.text(queues), media_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"}
    )
