# SPDX-License-Identifier: Apache-2.0
"""Live pages for tests and benchmarks: a module that they show, a server, a client that is no browser."""
import http.client
import json
import os
import sys
import threading
from contextlib import contextmanager

from gradscribe.live import Page

HEAT = '''def heat(u, k, steps):
    for _ in range(steps):
        flow = k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
    return np.sum(u**2)
'''
MODULE = f"""import numpy as np


{HEAT}"""
KINDS = "float64[8], float64[7], int"


@contextmanager
def serving(folder, wanted, text=MODULE, **words):
    """(page, file) of a page that runs, for the module that `wanted` names first, which is written into a folder."""
    file = folder / f"{wanted.names[0].partition(':')[0]}.py"
    file.write_text(text)
    sys.path.insert(0, str(folder))
    page = Page(wanted, **words)
    thread = threading.Thread(target=page.serve, daemon=True)
    thread.start()
    try:
        yield page, file
    finally:
        page.server.shutdown()
        page.close()
        thread.join(10)
        sys.path.remove(str(folder))


def saved(file, text):
    """Save a file as editors do: another file takes its place."""
    other = file.with_suffix(".new")
    other.write_text(text)
    os.replace(other, file)


class Client:
    """Requests to a page, as programs make them that need not be browsers."""

    def __init__(self, page):
        self.page, self.port = page, page.server.server_address[1]

    def ask(self, method, path, body=None, headers=None, token=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.putrequest(method, f"/{self.page.token if token is None else token}/{path}", skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{self.port}", **(headers or {})}.items():
            for each in value if isinstance(value, list) else [value]:
                connection.putheader(name, each)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        if body is not None:
            connection.send(body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def view(self, **asked):
        asked = {"number": 0, "recipe": "grad(f)", "arguments": KINDS, "timed": False, **asked}
        answer, content = self.ask("POST", "view", json.dumps(asked).encode(), {"Content-Type": "application/json"})
        assert answer.status == 200, answer.status
        return json.loads(content)
