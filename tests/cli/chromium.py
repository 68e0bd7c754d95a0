"""A headless Chromium, driven over its devtools pipe: no port, no driver, no package beyond Python's own."""

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib


def find():
    """The program, or None: what TSDP_CHROMIUM names, or one of the usual names."""
    names = ["chromium", "chromium-browser", "google-chrome"]
    if os.environ.get("TSDP_CHROMIUM"):
        names = [os.environ["TSDP_CHROMIUM"]]
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One page. Commands are those of the Chrome DevTools Protocol."""

    def __init__(self, program, limit=120.0):
        self.deadline = time.monotonic() + limit
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to_write = os.pipe()
        self.to_hear, to_say = os.pipe()

        def arrange():  # the browser reads commands from 3 and answers on 4
            spare = [os.dup2(fd, 20 + i) for i, fd in enumerate((to_read, to_say))]
            for target, fd in zip((3, 4), spare):
                os.dup2(fd, target)
                os.set_inheritable(target, True)

        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log, preexec_fn=arrange, close_fds=False)
        os.close(to_read)
        os.close(to_say)
        self.last_id = 0
        self.buffer = b""
        self.events = []
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_write)
        os.close(self.to_hear)
        self.profile.cleanup()

    def _message(self):
        import select
        while b"\0" not in self.buffer:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.to_hear], [], [], left)[0]:
                raise RuntimeError("Chromium does not answer")
            part = os.read(self.to_hear, 1 << 20)
            if not part:
                self.log.seek(0)
                raise RuntimeError(f"Chromium ended: {self.log.read()[-2000:].decode(errors='replace')}")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data):]
        while True:
            message = self._message()
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, event):
        while not any(message.get("method") == event for message in self.events):
            self.events.append(self._message())

    def emulate(self, width=1280, height=900, scheme="light", media="", mobile=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        """The value of a JavaScript expression; the page's own Content-Security-Policy does not bind it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression[:80]}…: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, clip=None, whole=False):
        """PNG of the view, the whole page, or clip = (x, y, width, height) in page coordinates."""
        extra = {}
        if clip:
            extra["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=bool(clip or whole),
                                          **extra)["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])


def pixels(png):
    """Rows of (r, g, b[, a]) bytes of a PNG of 8 bits a channel without interlacing, as Chromium writes them:
    (width, height, channels, bytes)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and interlaced == 0
            channels = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            data += body
        at += size + 12
    data = zlib.decompress(data)
    stride = width * channels
    out = bytearray()
    before = bytearray(stride)
    for y in range(height):
        kind = data[y * (stride + 1)]
        row = bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left = row[x - channels] if x >= channels else 0
            up = before[x]
            corner = before[x - channels] if x >= channels else 0
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = up
            elif kind == 3:
                guess = (left + up) // 2
            elif kind == 4:
                estimate = left + up - corner
                distances = abs(estimate - left), abs(estimate - up), abs(estimate - corner)
                guess = (left, up, corner)[distances.index(min(distances))]
            else:
                guess = 0
            row[x] = (row[x] + guess) & 0xFF
        out += row
        before = row
    return width, height, channels, bytes(out)


if __name__ == "__main__":
    sys.exit("a module of report_in_browser.py")
