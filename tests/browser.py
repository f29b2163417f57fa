"""Chromium without a window, driven by its DevTools protocol over a pipe."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One page. `faults` has what a script threw, and what the policy or the network refused."""

    def __init__(self, read, write):
        self.read, self.write, self.number, self.session, self.rest = read, write, 0, None, b""
        self.faults, self.events = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.call(f"{domain}.enable")

    def _next(self):
        while b"\0" not in self.rest:
            piece = os.read(self.read, 1 << 16)
            assert piece, "the browser ended"
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Runtime.exceptionThrown":
            self.faults.append(message["params"]["exceptionDetails"])
        elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.faults.append(message["params"]["entry"])
        elif "method" in message:
            self.events.append(message["method"])
        return message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def wait_for(self, event):
        while event not in self.events:
            self._next()
        self.events.remove(event)

    def open(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def value(self, expression):
        """The value of an expression, or of the promise that it is."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, (expression, got)
        return got["result"].get("value")

    def until(self, condition):
        """Waits for the page to make an expression true: it is looked at after each change."""
        return self.value("""new Promise(done => { const look = () => { const v = %s; if (v) { seen.disconnect(); done(v); } };
            const seen = new MutationObserver(look);
            seen.observe(document, {subtree: true, childList: true, attributes: true, characterData: true}); look(); })""" % condition)

    def press(self, key, text=None, code=0):
        extra = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def drag(self, points):
        """A stroke of the mouse through points of the window."""
        for kind, (x, y) in [("mousePressed", points[0]), *(("mouseMoved", p) for p in points[1:]), ("mouseReleased", points[-1])]:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=int(kind != "mouseReleased"), clickCount=1)


@contextlib.contextmanager
def page(folder):
    """A page of a new browser that keeps its files in a folder; skips where there is none."""
    if not PROGRAM:
        pytest.skip("there is no chromium")
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_read, from_write)]
    words = [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}",
             "--no-first-run", "--disable-background-networking", "about:blank"]
    process = subprocess.Popen(words, preexec_fn=lambda: [os.dup2(end, k + 3) for k, end in enumerate(ends)], close_fds=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for end in ends:
        os.close(end)
    os.close(to_read), os.close(from_write)
    try:
        yield Page(from_read, to_write)
    finally:
        process.kill()
        process.wait(60)
        os.close(from_read), os.close(to_write)
