# SPDX-License-Identifier: Apache-2.0
"""How long the live page takes from saving a file to the new view, as a program sees it that asks like a browser.

    python benchmarks/live_page.py

Between saves it waits until a process stands ready, as between two saves of a person.  Seconds: median, least, most.
"""
import http.client
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from gradscribe.live import Wanted

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from review.pages import KINDS, MODULE, saved, serving  # noqa: E402

ROUNDS = 9


def ask(page, method, name, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", page.server.server_address[1])
    connection.request(method, f"/{page.token}/{name}", body and json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse()


def main():
    asked = {"number": 0, "recipe": "grad(f, argnums=(0, 1))", "arguments": "", "timed": False}
    with tempfile.TemporaryDirectory() as folder, serving(
            Path(folder), Wanted(["rod:heat"], [("grad", "u,k")], KINDS)) as (page, file):
        json.load(ask(page, "POST", "view", asked))
        events, times = ask(page, "GET", "events"), []
        while not events.readline().startswith(b"data"):
            pass
        for k in range(2, ROUNDS + 2):
            page.workers.spare.ask({"do": "ready"}, 120.0)
            start = time.perf_counter()
            saved(file, MODULE.replace("np.sum(u**2)", f"np.sum({k} * u**2)"))
            while not events.readline().startswith(b"data"):
                pass
            found = json.load(ask(page, "POST", "view", asked))
            times.append(time.perf_counter() - start)
            assert str(2 * k) in found["right"]["text"]
    print(f"{statistics.median(times):.2f} {min(times):.2f} {max(times):.2f}")


if __name__ == "__main__":
    main()
