"""The form of a replica's log: one record on one line, as text or as JSON, on standard error.

Owns the form, and that all that is logged in this process comes in it: uvicorn's words, warnings of Python, and errors that
nobody caught as well as our own. Must not know what is logged; nobody logs tokens or values.
"""

import logging
import sys
import threading
import time
from types import TracebackType
from typing import Any, Final

import msgspec

from .audit import Act

_log: Final = logging.getLogger(__name__)


class _Lines(logging.Formatter):
    """Times are UTC, as in histories and answers: clocks of several replicas are compared."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        del datefmt
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class TextLines(_Lines):
    """Time, level, replica, module, message; the lines of an error follow on the same line, parted by `\\n` as text."""

    def __init__(self, replica_id: str) -> None:
        super().__init__(f"%(asctime)s %(levelname)s replica={replica_id} %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return "\\n".join(super().format(record).splitlines())


class JsonLines(_Lines):
    """An object with the members time, level, logger, replica and message; for an act also `fields`, with its facts, and
    for an error `exception`, with the lines that Python prints for it."""

    def __init__(self, replica_id: str) -> None:
        super().__init__()
        self._replica_id: Final = replica_id

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "replica": self._replica_id,
            "message": _printable(record.getMessage()),
        }
        if isinstance(record.msg, Act):
            line |= {"message": record.msg.act, "fields": record.msg.facts}
        if record.exc_info:
            line["exception"] = _printable(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()


def log_to_stderr(replica_id: str, *, is_json: bool = False, level: int = logging.INFO) -> None:
    """Log all of this process like that, from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(replica_id) if is_json else TextLines(replica_id))
    logging.basicConfig(handlers=[handler], level=level)
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda found: _uncaught(found.exc_type, found.exc_value, found.exc_traceback)
    # Its warnings are about requests that are no HTTP: whoever sends many of these must not fill the disk with a log.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if error is not None:
        _log.critical("an error that nobody caught", exc_info=(kind, error, trace))


def _printable(text: str) -> str:
    """`text` without what no UTF-8 can say (halves of surrogate pairs)."""
    return text.encode(errors="replace").decode()
