"""What a replica tells the service manager that started it, where there is one that wants to know: systemd with `Type=notify`.

Owns the protocol of sd_notify(3): a datagram to the socket that the variable NOTIFY_SOCKET names.
"""

import logging
import os
import socket

_log = logging.getLogger(__name__)


def tell_ready() -> None:
    """Say that requests are answered and signals listened for. Where nobody asked, nothing is said; where nobody hears it, the
    log has it, and the replica goes on."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    # An @ stands for the zero byte of a name in the abstract namespace of Linux.
    address = "\0" + name[1:] if name.startswith("@") else name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(b"READY=1", address)
    except OSError as error:
        _log.warning("the service manager at NOTIFY_SOCKET=%s was not told of the start: %s", name, error)
