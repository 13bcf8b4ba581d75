"""A headless Chromium, driven through chromedriver: as narrow as a telephone, light or dark, and all of it heard."""

import json
import shutil
import subprocess
import urllib.request
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMEDRIVER = shutil.which("chromedriver")
A_MOUSE = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", A_MOUSE)


class Browser:
    """One window."""

    def __init__(self, session):
        self._session = session

    def _ask(self, path, **body):
        return ask(f"{self._session}/{path}", body)

    def tell(self, command, **parameters):
        """A command of the browser's own protocol."""
        return self._ask("goog/cdp/execute", cmd=command, params=parameters)

    def run(self, script, *arguments):
        """What a script returns, or the promise that it returns comes to."""
        return self._ask("execute/sync", script=script, args=arguments)

    def look(self, width, scheme):
        """From now on as on a screen so wide, that is light or dark."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        self._ask("url", url=address)

    def heard(self):
        """Since last asked: what was asked for, but for what an address itself contains, and what the console says."""
        events = [json.loads(entry["message"])["message"] for entry in self._ask("se/log", type="performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")], self._ask("se/log", type="browser")


def ask(address, body, method="POST"):
    data = None if method == "DELETE" else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["value"]


@contextmanager
def browser(folder):
    """A window that lives as long as the block; `folder` is the browser's own."""
    driver = subprocess.Popen([CHROMEDRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = f"http://127.0.0.1:{_port(driver.stdout)}/session"
        options = {"binary": CHROMIUM, "args": [*ARGUMENTS, f"--user-data-dir={folder}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        session = f"{address}/{ask(address, {'capabilities': {'alwaysMatch': wanted}})['sessionId']}"
        try:
            yield Browser(session)
        finally:
            ask(session, None, "DELETE")
    finally:
        driver.terminate()
        driver.wait()


def _port(lines):
    """chromedriver takes a free one and says which."""
    for line in lines:
        if "successfully on port" in line:
            return int(line.rstrip(".\n").rsplit(" ", 1)[1])
    raise RuntimeError("chromedriver did not start")
