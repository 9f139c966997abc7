# SPDX-License-Identifier: Apache-2.0
"""How long the live page takes from saving a file to the new view, as a program sees it that asks like a browser.

    python benchmarks/live_page.py

Between saves it waits until a process stands ready, as between two saves of a person.  Seconds: median, least, most.
"""
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from gradscribe.live import Page, Wanted

ROUNDS = 9
MODULE = """import numpy as np

def heat(u, k, steps):
    for _ in range(steps):
        flow = k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
    return np.sum({} * u**2)
"""


def ask(page, method, name, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", page.server.server_address[1])
    connection.request(method, f"/{page.token}/{name}", body and json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse()


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rod.py")
        file.write_text(MODULE.format(1))
        sys.path.insert(0, folder)
        page = Page(Wanted(["rod:heat"], [("grad", "u,k")], "float64[8], float64[7], int"))
        threading.Thread(target=page.serve, daemon=True).start()
        asked = {"number": 0, "recipe": "grad(f, argnums=(0, 1))", "arguments": "", "timed": False}
        json.load(ask(page, "POST", "view", asked))
        events, times = ask(page, "GET", "events"), []
        while not events.readline().startswith(b"data"):
            pass
        for k in range(2, ROUNDS + 2):
            page.workers.spare.ask({"do": "ready"}, 120.0)
            start = time.perf_counter()
            Path(folder, "new").write_text(MODULE.format(k))
            os.replace(Path(folder, "new"), file)
            while not events.readline().startswith(b"data"):
                pass
            found = json.load(ask(page, "POST", "view", asked))
            times.append(time.perf_counter() - start)
            assert str(2 * k) in found["right"]["text"]
        page.server.shutdown()
        page.close()
    print(f"{statistics.median(times):.2f} {min(times):.2f} {max(times):.2f}")


if __name__ == "__main__":
    main()
