"""How long an operation may take for which a test gives no time: as long as on a busy machine."""

from importlib import import_module
from typing import Final

PATIENT_S: Final = 20.0
_MODULES: Final = ("quorate.client_sdk.api.connect", "quorate.replica.api.operations")
"""With the deadline of operations whose caller names none, 5 s."""


def be_patient() -> None:
    """From now on operations of this process have that deadline, by the SDK and over HTTP."""
    for module in _MODULES:
        vars(import_module(module))["DEADLINE_S"] = PATIENT_S
