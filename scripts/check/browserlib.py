"""A headless Chromium, driven over a pipe by its DevTools protocol. Needs Python alone."""
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Tab": 9, "Home": 36, "End": 35, "Enter": 13, " ": 32}
WAIT_S = 30


class Browser:
    """One browser with one page. `events` has all its events, in order."""

    def __init__(self, program=None):
        program = program or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            raise SystemExit("there is no chromium; name one with --chromium")
        self.profile = tempfile.TemporaryDirectory(prefix="report-browser-", ignore_cleanup_errors=True)
        ours, theirs = os.pipe(), os.pipe()
        # Out of the way of the numbers 3 and 4, which Chromium reads from and writes to.
        read, write = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (ours[0], theirs[1]))

        def place():
            os.dup2(read, 3)
            os.dup2(write, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                 "--disable-dev-shm-usage", "--force-color-profile=srgb", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen([program, *flags], preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (read, write, ours[0], theirs[1]):
            os.close(fd)
        self.to, self.source, self.rest, self.count, self.events, self.session = ours[1], theirs[0], b"", 0, [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.source)
        self.profile.cleanup()

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        end = time.monotonic() + WAIT_S
        while True:
            told = self.receive(end - time.monotonic())
            if told is None:
                raise TimeoutError(f"{method}: no answer in {WAIT_S} s")
            if told.get("id") == self.count:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']['message']}")
                return told["result"]

    def receive(self, timeout):
        """The next message, or None after `timeout` seconds; an event is kept too."""
        end = time.monotonic() + timeout
        while b"\0" not in self.rest:
            if not select.select([self.source], [], [], max(0, end - time.monotonic()))[0]:
                return None
            piece = os.read(self.source, 1 << 20)
            if not piece:
                raise EOFError("the browser ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        told = json.loads(message)
        if "method" in told:
            self.events.append(told)
        return told

    def settle(self, seconds=0.25):
        """Lets the page run for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.receive(left)

    def open(self, address):
        """Loads a page; returns when its load event is over. Earlier events are dropped."""
        self.call("Page.navigate", url="about:blank")
        self.settle(0.1)
        self.events.clear()
        self.call("Page.navigate", url=address)
        end = time.monotonic() + WAIT_S
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            if self.receive(end - time.monotonic()) is None:
                raise TimeoutError(f"{address} did not load")
        # The load event may have been that of the blank page.
        while not self.js("location.href !== 'about:blank' && document.readyState === 'complete'"):
            self.settle(0.05)
        self.settle()

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "exception in the page"))
        return answer["result"].get("value")

    def viewport(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.settle(0.2)

    def scheme(self, value):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])
        self.settle()

    def place(self, selector):
        """Scrolls an element into the middle and returns its box in the viewport."""
        box = self.js(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null; e.scrollIntoView({{block: "center", behavior: "instant"}});
            const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; }})()""")
        if box is None:
            raise LookupError(f"there is no {selector}")
        self.settle(0.15)
        return box

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        left, top, width, height = self.place(selector)
        x, y = left + width / 2, top + height / 2
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def key(self, key, text=None):
        code = KEYS.get(key, ord(key[0].upper()))
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)
        self.settle(0.15)

    def write(self, text):
        self.call("Input.insertText", text=text)
        self.settle(0.4)

    def shot(self, path, **more):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False, **more)["data"]))

    def requests(self):
        """Every requested address since the page was opened, except those inside it."""
        asked = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]

    def complaints(self):
        """Errors and warnings of the page on its console, and exceptions."""
        found = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str([a.get("value") for a in params["args"]]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning") and "willReadFrequently" not in params["entry"]["text"]:
                found.append(params["entry"]["text"])
        return found
