"""A headless Chromium, driven through its DevTools protocol: what pages are looked at with, and used as a person does.

The protocol is JSON over one websocket on the loopback: a numbered command, its answer, and events in between. No name but
the loopback's can be resolved, so a page that tried to load something would fail at it, and be seen.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from websockets.sync.client import ClientConnection, connect

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_S_MAX: Final = 60
CLICKS_MAX: Final = 5
ANSWER_S_MAX: Final = 90
MISSING: Final = (
    f"no browser found (looked for {', '.join(NAMES)}); on Debian and Ubuntu: apt-get install chromium"
)
OPTIONS: Final = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--remote-debugging-address=127.0.0.1",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
)

TEXT_CONTRAST_MIN: Final = 4.5
MARK_CONTRAST_MIN: Final = 3.0

# Everything that sticks out of the page to the right, boxes that scroll by themselves left out. A phone would zoom out, so
# the width that was asked for counts.
OVERFLOWING: Final = """[...document.querySelectorAll('body *')].filter(element =>
  element.checkVisibility() && !element.closest('.scroll *') && !element.closest('svg *')
  && element.getBoundingClientRect().right > {width} + 0.5).map(element => element.outerHTML.slice(0, 80))"""

# Text or marks whose colour is too near to that of the page, by the formula of WCAG 2.
CONTRASTS: Final = """(() => {
  const light = colour => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const between = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
  };
  const found = {text: {}, marks: {}};
  const note = (kind, name, value) => { found[kind][name] = Math.min(found[kind][name] ?? 99, value); };
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility() || !behind(element)) continue;
    const style = getComputedStyle(element);
    if (element.closest('svg')) {
      if (/^(title|desc|svg)$/.test(element.tagName)) continue;
      const kind = element.tagName === 'text' ? 'text' : 'marks';
      const name = element.tagName + '.' + element.getAttribute('class');
      // Lines of the axis are meant to be faint: nothing is read from them alone.
      if (/grid|base|link/.test(name)) continue;
      const colour = style.fill !== 'none' && style.strokeWidth !== '2px' ? style.fill : style.stroke;
      note(kind, name, between(element.tagName === 'line' ? style.stroke : colour, behind(element)));
    } else if ([...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) {
      note('text', element.tagName + '.' + element.className, between(style.color, behind(element)));
    }
  }
  return found;
})()"""


def find() -> str | None:
    """Give the path of a browser on this machine, or None; a name that does not answer stands for none."""
    paths = (path for name in NAMES if (path := shutil.which(name)))
    return next((path for path in paths if _answers(path)), None)


def _answers(path: str) -> bool:
    asked = subprocess.run(
        [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=START_S_MAX, check=False
    )
    return asked.returncode == 0


class Tab:
    """One page in the browser, and everything that it said or asked the network for."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self._session = ""
        self._loaded = False
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and give its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._connection.send(json.dumps(message))
        deadline_s = time.monotonic() + ANSWER_S_MAX
        while True:
            answer = self._receive(deadline_s)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self, deadline_s: float) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._connection.recv(timeout=deadline_s - time.monotonic()))
        self._note(answer.get("method", ""), answer.get("params", {}))
        return answer

    def _note(self, event: str, details: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif event == "Log.entryAdded":
            self.messages.append(details["entry"]["text"])
        elif event in {"Runtime.consoleAPICalled", "Runtime.exceptionThrown"}:
            self.messages.append(json.dumps(details))
        elif event == "Page.loadEventFired":
            self._loaded = True

    def show(
        self,
        page: Path | str,
        *,
        width: int = 1280,
        dark: bool = False,
        media: Literal["screen", "print"] = "screen",
    ) -> None:
        """Load a file or an address, as on a screen so many pixels wide, and wait until it stands."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._loaded = False
        url = page.absolute().as_uri() if isinstance(page, Path) else page
        self.call("Page.navigate", url=url)
        deadline_s = time.monotonic() + ANSWER_S_MAX
        while not self._loaded:
            self._receive(deadline_s)

    def evaluate(self, expression: str) -> Any:
        """Give the value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Give the value of a JavaScript expression once it is true, or fail with what the page shows."""
        deadline_s = time.monotonic() + ANSWER_S_MAX
        while time.monotonic() < deadline_s:
            if found := self.evaluate(expression):
                return found
            time.sleep(0.05)
        text = self.evaluate("document.body.innerText")
        raise AssertionError(f"never true: {expression}\n{text}\n{self.messages}")

    def click(self, selector: str) -> None:
        """Press the mouse's button in the middle of an element, wherever it is scrolled to."""
        place = (
            f"(() => {{ const it = document.querySelector({json.dumps(selector)}); it.scrollIntoView({{block: 'center'}});"
            " const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        hears = (
            "window.isHit = false; document.addEventListener('click', pressed => {"
            f" window.isHit ||= pressed.target.closest({json.dumps(selector)}) !== null; }}, {{capture: true, once: true}});"
        )
        for _ in range(CLICKS_MAX):
            before, found = None, self.evaluate(place)
            while found != before:  # What is drawn anew moves it away from under the mouse.
                before, found = (
                    found,
                    self.evaluate(f"new Promise(done => requestAnimationFrame(() => done({place})))"),
                )
            self.evaluate(hears)
            x, y = found
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            if self.evaluate("window.isHit !== false"):
                return  # Else it was drawn anew while the button was down, and nothing was clicked.
        raise AssertionError(f"{selector} is drawn anew whenever it is clicked")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key by its name, as Tab, Enter, Escape or ArrowDown."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowUp": 38, "ArrowDown": 40}
        held: dict[str, Any] = {
            "key": key,
            "windowsVirtualKeyCode": codes[key],
            "modifiers": 8 if shift else 0,
        }
        text = {"Enter": "\r", " ": " "}.get(key)
        if text is not None:
            held["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **held)
        self.call("Input.dispatchKeyEvent", type="keyUp", **held)

    def write(self, text: str) -> None:
        """Type a text where the focus is, in place of what is there."""
        self.evaluate("document.activeElement.select()")
        self.call("Input.insertText", text=text)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Put another tab in front of this one for a while."""
        own = self.call("Target.getTargetInfo")["targetInfo"]["targetId"]
        other = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.call("Target.activateTarget", targetId=other)
        self.wait_for("document.hidden")
        yield
        self.call("Target.closeTarget", targetId=other)
        self.call("Target.activateTarget", targetId=own)
        self.wait_for("!document.hidden")

    def accessible(self) -> list[tuple[str, str]]:
        """Give role and name of everything that a screen reader meets, in its order."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored") and "role" in node
        ]

    def screenshot(self) -> bytes:
        """Give a PNG of the whole page, however long."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(found["data"])

    def pdf(self) -> bytes:
        """Give the page as it is printed on A4."""
        found = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        return base64.b64decode(found["data"])


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """Start a browser with one page, its settings kept in an empty folder, and end it afterwards.

    The test is skipped where there is no browser.
    """
    path = find()
    if path is None:
        pytest.skip(MISSING)
    # Chromium's own sandbox refuses to work for root; what is shown here is our own file.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    errors = profile / "stderr.txt"
    profile.mkdir(parents=True, exist_ok=True)
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [path, *OPTIONS, *sandbox, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
            # What a killed browser leaves behind lies in the test's own folder.
            env={**os.environ, "TMPDIR": str(profile)},
        )
        try:
            with connect(_address(process, errors), max_size=None, compression=None) as connection:
                yield Tab(connection)
        finally:
            # The whole group that began with our own process: its helpers would outlive it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=START_S_MAX)


def _address(process: "subprocess.Popen[bytes]", errors: Path) -> str:
    deadline_s = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline_s:
        said = errors.read_text(errors="replace")
        found = re.search(r"DevTools listening on (ws://127\.0\.0\.1:\S+)", said)
        if found:
            return found[1]
        assert process.poll() is None, f"the browser ended at once: {said}"
        time.sleep(0.05)
    raise AssertionError(f"the browser did not say where it listens: {errors.read_text(errors='replace')}")
