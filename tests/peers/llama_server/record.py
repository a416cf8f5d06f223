"""Stands between deeplook and a server, and keeps what is asked: FOLDER/NUMBER.json with path and body.

    start(url, folder) -> the base URL to ask instead
"""

import http.server
import itertools
import json
import pathlib
import threading
import urllib.error
import urllib.request


def start(url, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = itertools.count()
    origin, _, path = url.partition("://")[2].partition("/")

    class Between(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            kept = {"path": self.path, "body": json.loads(body)}
            (folder / f"{next(numbers):03}.json").write_text(json.dumps(kept), encoding="utf-8")
            headers = {name: self.headers[name] for name in ("content-type", "anthropic-version") if self.headers[name]}
            request = urllib.request.Request(f"http://{origin}{self.path}", body, headers)
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    status, said = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, said = error.code, error.read()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/{path}"
