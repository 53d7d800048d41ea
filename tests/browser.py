"""A real browser, driven through the pipe of Chromium's DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_PATIENCE = 60
"""Seconds until a browser that does not answer is given up."""


class Page:
    """A page of a browser without a window."""

    def __init__(self, write: int, read: int) -> None:
        self._write = write
        self._read = read
        self._rest = b""
        self._count = 0
        self._session = ""
        self.errors: list[str] = []
        """Exceptions and errors that the page has logged."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.send(f"{part}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command, and return its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], _PATIENCE)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description", details["text"])))
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])
        return message

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Open a file, in a window of this size, in a light or dark scheme."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.run(
            "new Promise(done => document.readyState == 'complete' ? done() : addEventListener('load', done))"
        )
        self.settle()

    def run(self, code: str) -> Any:
        """Return what an expression of JavaScript evaluates to."""
        found = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def settle(self) -> None:
        """Wait until what was to be drawn is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def drag(self, *places: tuple[float, float]) -> None:
        """Press the mouse at the first place, move it over the others, and release it at the last."""
        for kind, (x, y) in (
            ("mouseMoved", places[0]),
            ("mousePressed", places[0]),
            *(("mouseMoved", place) for place in places[1:]),
            ("mouseReleased", places[-1]),
        ):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        self.settle()

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Tab": 9}.get(
            key, 32
        )
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                modifiers=8 if shift else 0, **(text if kind == "keyDown" else {}),
            )  # fmt: skip
        self.settle()

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Return left, top, width and height of an element, scrolled into view."""
        code = f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();
            return [b.left, b.top, b.width, b.height]; }})()"""
        left, top, width, height = self.run(code)
        return left, top, width, height

    def picture(self, path: Path) -> None:
        """Write what the page shows, all of it, as PNG."""
        shown = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shown["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """Start a browser for a page; the test is skipped where there is none."""
    found = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("a real browser needs chromium")
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()

    def connect() -> None:  # Chromium reads from 3, and writes to 4, either of which may be taken
        os.dup2(to_read, 100)
        os.dup2(from_write, 101)
        os.dup2(100, 3, inheritable=True)
        os.dup2(101, 4, inheritable=True)

    process = subprocess.Popen(
        [found, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb"],
        preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Page(to_write, from_read)
    finally:
        process.kill()
        process.wait()
        for end in (to_read, to_write, from_read, from_write):
            os.close(end)
