"""A headless Chromium, driven through a pipe by the DevTools protocol: no driver, no package of Python's."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


def find_chromium() -> str | None:
    for name in (os.environ.get("STOKER_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        if name and (found := shutil.which(name)):
            return found
    return None


class Browser:
    """One tab. Errors of scripts and refusals of the page's own policy are collected in `complaints`."""

    def __init__(self, program: str):
        self.profile = tempfile.mkdtemp(prefix="stoker-pages-")
        to_read, self.to = os.pipe()
        self.come, to_write = os.pipe()
        keep = ("sh", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}')
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--remote-debugging-pipe",
                 "--disable-background-networking", "--no-first-run", f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen([*keep, program, *flags], pass_fds=(to_read, to_write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.left = b""
        self.number = 0
        self.session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def close(self) -> None:
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.come)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self, until: float) -> dict | None:
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.come], [], [], max(0, until - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.come, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended")
            self.left += part
        one, self.left = self.left.split(b"\0", 1)
        return json.loads(one)

    def note(self, message: dict) -> None:
        kind, said = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif kind == "Log.entryAdded":
            self.complaints.append(said["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
            self.complaints.append(str(said["args"]))
        elif kind == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])

    def ask(self, method: str, limit_s: float = 120, **parameters) -> dict:
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + limit_s
        while (message := self.message(until)) is not None:
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)
        raise TimeoutError(method)

    def open(self, page: pathlib.Path, width: int = 1180, scheme: str = "light", media: str = "") -> None:
        self.ask("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Page.navigate", url=page.resolve().as_uri())
        there = "document.querySelector('section svg, section table, section li') !== null"
        if not self.comes(f"document.readyState === 'complete' && {there}"):
            raise TimeoutError(f"{page} draws nothing; complaints: {self.complaints}")

    def comes(self, script: str) -> bool:
        """Whether script becomes true within a minute: charts are drawn when their place has been laid out."""
        until = time.monotonic() + 60
        while not self.run(script):
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def run(self, script: str):
        """The value of a script's expression."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, file: pathlib.Path) -> None:
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("document.documentElement.clientWidth")
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        file.write_bytes(base64.b64decode(shot["data"]))

    def printed(self, file: pathlib.Path) -> None:
        file.write_bytes(base64.b64decode(self.ask("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]))
