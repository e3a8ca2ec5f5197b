"""A real browser, for tests of pages; they are skipped where there is no Chromium."""

import json
import mimetypes
import re
import shutil
import subprocess
import threading
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
NO_CHROMIUM = f"no Chromium: none of {', '.join(NAMES)} is on the PATH"


class Site(ThreadingHTTPServer):
    """Serves pages, a mapping of paths to texts or bytes, and remembers what was asked for."""

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.requests = pages, []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.requests.append(path)
        body = self.server.pages.get(path)
        kind = mimetypes.guess_type(path)[0] or "text/html"
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else (body or "").encode())

    def log_message(self, *args):
        pass


def browse(pages, tmp_path, *options):
    """Open /probe.html; return what it found, the console's lines and the requests."""
    with Site(pages) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--virtual-time-budget=20000",
            *options,
            "--dump-dom",
            f"http://127.0.0.1:{site.server_port}/probe.html",
        ]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=180)
        site.shutdown()
    assert shown.returncode == 0, shown.stderr
    console = [line for line in shown.stderr.splitlines() if ":CONSOLE" in line]
    found = re.search(r"FOUND(\[.*\])END", unescape(shown.stdout), re.S)
    assert found, shown.stdout[-2000:]
    return json.loads(found[1]), console, site.requests
