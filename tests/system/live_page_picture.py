"""Makes `docs/how-to/live-page.png`, the picture of the live page that README.md shows, from a playground that runs:

.venv/bin/python -m tests.system.live_page_picture > docs/how-to/live-page.png
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import httpx

from quorate.cli.playground.server import KEY_HEADER
from tests.support.browser import Tab, tab
from tests.system.harness import WAIT_S
from tests.system.live_page import DRAWN, SUM

WIDTH: Final = 1640
SCALE: Final = 0.65


def fill(client: httpx.Client) -> None:
    """Objects of several types, a dead letter, a lease, a deleted key, and a value that only those hold that are up."""
    for name in ("shop.orders", "shop.returns"):
        client.post(f"/v1/queues/{name}/items", json={"items": ["cup", "plate", "bowl", "jug"]})
    taken = client.post("/v1/queues/shop.orders/acquire", json={"max": 2, "lease_s": 600}).json()["leases"]
    client.post("/v1/queues/shop.orders/reject", json={"tokens": [taken[0]["token"]]})
    for key in ("ann", "bob", "eve"):
        client.put(f"/v1/dictionaries/users/entries/{key}", json={"value": {"age": 36}})
    client.delete("/v1/dictionaries/users/entries/bob")
    client.put("/v1/registers/leader", json={"value": "ann"})


def picture(shown: Tab, told: dict[str, Any]) -> bytes:
    """The page with one of three replicas killed, as a PNG."""
    address, _, key = told["url"].partition("/ui#key=")
    with httpx.Client(base_url=address, timeout=WAIT_S, trust_env=False) as client:
        fill(client)
        client.post("/playground/replicas/r3/kill", headers={KEY_HEADER: key}).raise_for_status()
        client.post("/v1/queues/shop.orders/items", json={"item": "spoon"}).raise_for_status()
    shown.show(f"{address}/ui?object=queue/shop.orders#key={key}", width=WIDTH)
    shown.wait_for(f"{DRAWN} && {SUM}.startsWith('2 of 3')")
    smaller = {"width": WIDTH, "height": 800, "deviceScaleFactor": SCALE, "mobile": False}
    shown.call("Emulation.setDeviceMetricsOverride", **smaller)
    shown.click("#list-letters")
    shown.wait_for("document.querySelectorAll('#letter-rows li').length === 1")
    shown.evaluate(
        "document.activeElement.blur(); scrollTo(0, 0); document.getAnimations().forEach(each => each.finish())"
    )
    return shown.screenshot()


def main() -> None:
    """Write the picture to the standard output."""
    command = [sys.executable, "-m", "quorate.cli.main", "playground", "--json"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE) as playground,
    ):
        assert playground.stdout is not None
        told = json.loads(playground.stdout.readline())
        try:
            with tab(Path(folder)) as shown:
                sys.stdout.buffer.write(picture(shown, told))
        finally:
            playground.terminate()


if __name__ == "__main__":
    main()
