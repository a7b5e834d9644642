"""What holds for all tests, however busy or slow the machine is: no example has a deadline, and no process
compiles what another has compiled."""

import os
import signal
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.scheduling import seconds_of, unit_of
from tests.support.patience import be_patient

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling

# An example that was interrupted by other work of the machine is no slow one; and what a seed draws depends on the modules that
# are loaded, so that a health check of the draws may fail in one worker alone.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patient")

# What is made while tests are collected is there to the end: it is looked through for garbage neither then nor later.
gc = import_module("gc")  # and not this repository's room of that name, which mypy finds first
gc.disable()

# httpx reads every authority that this machine trusts for each client that it makes, which takes 25 ms, though hardly one speaks TLS.
httpx_transports = import_module("httpx._transports.default")
httpx_transports.create_ssl_context = cache(httpx_transports.create_ssl_context)  # type: ignore[attr-defined]

# A request for which a test gives no time may take as long as on a busy machine: httpx gives it 5 s.
httpx_config = import_module("httpx._config")
for phase in ("connect", "read", "write", "pool"):
    setattr(httpx_config.DEFAULT_TIMEOUT_CONFIG, phase, 60.0)

# So may an operation: clients and replicas give it 5 s. What is to be in vain has a deadline of its own.
be_patient()

# Hundreds of processes are started, each of which would compile all modules anew if it kept nothing; and so would each worker, with what pytest
# makes of each `assert` of the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Each worker of pytest-xdist begins to collect at another place, and finds compiled what others have collected: in a fresh checkout all
    would compile all of it at the same time."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    folders = [config.rootpath / each for each in config.args]
    if worker is None or not all(folder.is_dir() for folder in folders):
        return
    files = sorted({str(path) for folder in folders for path in folder.rglob("test_*.py")})
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    config.args[:] = files[first:] + files[:first]


def pytest_runtest_setup() -> None:
    """Ctrl-C works, as in a terminal: who runs tests in the background may have it ignored, and all children with it, which some
    tests end that way."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what takes long first, in every worker of pytest-xdist alike."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (-seconds_of(item.nodeid), item.path))


def pytest_collection_finish() -> None:
    """Look for garbage from now on, in what is made from now on."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer | None") -> "Scheduling | None":
    """With `--dist loadscope`, spread the units of `tests.scheduling`, in the order of the collection."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - it may not be installed

    class Units(LoadScopeScheduling):  # type: ignore[misc]  # it ships no types
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)
