"""gradscribe live without a browser: who is let in, what is served, what a saved file changes, what is never run."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from review.pages import HEAT, KINDS, Client, saved, serving

import gradscribe as gs
from gradscribe import live_view
from gradscribe.command import main
from gradscribe.live import FILES, Wanted
from gradscribe.live_process import Worker
from gradscribe.live_view import Asked, given, made, offers, usual_arguments, view

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = f'''import dataclasses
import numpy as np


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: float


{HEAT}

def layer(p, x):
    return np.sum(np.tanh(x * p.w + p.b))


def forever(x):
    while x < 1.0:
        x = x * 0.5
    return x
'''


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(client, the module's file) of a page that runs."""
    wanted = Wanted(["live_rod:heat", "live_rod:layer", "live_rod:forever"], [("grad", "u,k")],
                    "live_rod.Layer(w=float64[3], b=float)")
    with serving(tmp_path_factory.mktemp("live"), wanted, MODULE, limit=60.0) as (page, file):
        yield Client(page), file


# --- who is let in ----------------------------------------------------------------------------------------------------

def test_it_listens_on_the_loopback_only(served):
    assert served[0].page.server.server_address[0] == "127.0.0.1"
    assert len(served[0].page.token) >= 43          # 256 bits


@pytest.mark.parametrize("name", [*FILES, "start", "events", "nothing", "view"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_wrong_token(served, name, method):
    client, _ = served
    for token in ("", "wrong", client.page.token[:-1], client.page.token + "x", "%00", ".."):
        answer, content = client.ask(method, name, b"{}" if method == "POST" else None, token=token)
        assert (answer.status, content) == (403, b""), token


def test_bytes_that_are_no_text(served):
    for path in (b"/\xe9\xff/", b"/\xe2\x82\xac/live.js"):
        with socket.create_connection(("127.0.0.1", served[0].port), timeout=30) as raw:
            raw.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = raw.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 403 ") and answer.endswith(b"\r\n\r\n")


def test_the_token_is_the_first_part_of_the_path(served):
    client, _ = served
    for path in (f"/x/{client.page.token}/", f"/?{client.page.token}/", f"/x?token={client.page.token}", "/"):
        connection = http.client.HTTPConnection("127.0.0.1", client.port)
        connection.request("GET", path)
        assert connection.getresponse().status == 403
        connection.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1@evil.example",
                                  "localhost.evil.example", "", "[::1]", "0.0.0.0", "127.0.0.1:1:2", "192.168.0.1",
                                  ["127.0.0.1", "evil.example"]])
def test_another_host_is_refused(served, host):
    """A name of another site that leads to the loopback: DNS rebinding."""
    answer, content = served[0].ask("GET", "", headers={"Host": host})
    assert (answer.status, content) == (403, b"")


def test_hosts_that_are_the_loopback(served):
    for host in ("127.0.0.1:8000", "localhost:8000", "localhost", "LOCALHOST:1"):       # a port may be forwarded
        assert served[0].ask("GET", "", headers={"Host": host})[0].status == 200


def test_another_origin_is_refused(served):
    client, _ = served
    body = json.dumps({"number": 0, "recipe": "grad(f)", "arguments": KINDS, "timed": False}).encode()
    kind = {"Content-Type": "application/json"}
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert client.ask("POST", "view", body, {**kind, "Origin": origin})[0].status == 403
    own = f"http://127.0.0.1:{client.port}"
    assert client.ask("POST", "view", body, {**kind, "Origin": own})[0].status == 200


# --- what is served ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", FILES)
def test_files(served, name):
    answer, content = served[0].ask("GET", name)
    assert answer.status == 200 and len(content) > 500
    assert answer.getheader("Content-Type").startswith(FILES[name][1])
    assert answer.getheader("Cache-Control") == "no-store" and answer.getheader("Referrer-Policy") == "no-referrer"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    policy = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    if name == "":
        assert b"{{nonce}}" not in content and policy.partition("'nonce-")[2].partition("'")[0].encode() in content


@pytest.mark.parametrize("name", ["nothing", "live.py", "../live.py", "%2e%2e/live.py", "index.html", "/etc/passwd",
                                  "live_assets/live.js", "view", "codemirror.js/"])
def test_nothing_else_is_served(served, name):
    answer, content = served[0].ask("GET", name)
    assert (answer.status, content) == (404, b"")
    if name != "view":
        answer, content = served[0].ask("POST", name, b"{}", {"Content-Type": "application/json"})
        assert (answer.status, content) == (404, b"")


@pytest.mark.parametrize("body, kind", [
    (b"", "application/json"), (b"{", "application/json"), (b"[]", "application/json"), (b"{}", "application/json"),
    (b"[" * 15_000, "application/json"), (b" " * 30_000, "application/json"), (b"\xff\xfe", "application/json"),
    (b'{"number": 3, "recipe": "grad(f)", "arguments": "", "timed": false}', "application/json"),
    (b'{"number": -1, "recipe": "grad(f)", "arguments": "", "timed": false}', "application/json"),
    (b'{"number": true, "recipe": "grad(f)", "arguments": "", "timed": false}', "application/json"),
    (b'{"number": 0, "recipe": "grad(f)", "arguments": "", "timed": false, "trusted": "x"}', "application/json"),
    (b'{"number": 0, "recipe": "grad(f)", "arguments": "", "timed": false}', "text/plain"),
])
def test_wrong_requests(served, body, kind):
    answer, content = served[0].ask("POST", "view", body, {"Content-Type": kind})
    assert (answer.status, content) == (400, b"")


def test_what_the_page_shows_first(served):
    first = json.loads(served[0].ask("GET", "start")[1])
    assert first == {"names": ["heat", "layer", "forever"], "recipe": "grad(f, argnums=(0, 1))",
                     "arguments": "live_rod.Layer(w=float64[3], b=float)"}


def test_a_view(served):
    client, file = served
    found = client.view(timed=True)
    assert found["error"] is None and found["right"]["name"] == "grad_heat" and not found["right"]["compiled"]
    text, (block,) = found["right"]["text"].splitlines(), found["left"]["blocks"]
    assert block["file"] == str(file) and block["lines"] == MODULE.splitlines()[10:17] and block["start"] == 11
    line = next(k for k, words in enumerate(text, 1) if words.strip() == "u[:-1] += flow")
    link = next(link for link in found["links"] if link["line"] == line)
    assert [(p["line"], p["function"]) for p in link["from"]] == [(15, "heat")]
    times = {t["line"]: t for t in found["times"]["lines"]}
    assert times[line]["passes"] == 3 and times[line]["seconds"] > 0 and found["times"]["seconds"] > 0
    assert "grad(f, argnums=(0, 1, 2))" in found["offers"]


# --- nothing that a request contains is run ---------------------------------------------------------------------------

EVIL = ["__import__('os').system('touch {0}')", "subprocess.Popen(args=['touch', '{0}'])", "os.system('touch {0}')",
        "open(file='{0}', mode='w')", "[open('{0}', 'w') for _ in (1,)]", "(lambda: open('{0}', 'w'))()",
        "pathlib.Path(args='{0}')", "builtins.open(file='{0}', mode='w')", "f\"{{open('{0}', 'w')}}\"",
        "grad(f, argnums=open('{0}', 'w'))", "grad(open('{0}', 'w'))", "(x := open('{0}', 'w'))"]


@pytest.mark.parametrize("text", EVIL)
@pytest.mark.parametrize("field", ["recipe", "arguments"])
def test_code_is_not_run(served, tmp_path, text, field):
    marker = tmp_path / "made"
    found = served[0].view(**{field: text.format(marker)})
    assert found["error"] is not None and found["right"] is None
    assert not marker.exists()


@pytest.mark.parametrize("asked, told", [
    ({"recipe": "f"}, "f alone is no transformation"), ({"recipe": ""}, "is not a transformation"),
    ({"recipe": "grad(f"}, "is not a transformation"), ({"recipe": "pmap(f)"}, "is not a transformation"),
    ({"recipe": "grad(f, nothing=1)"}, "nothing"), ({"recipe": "grad(" * 300 + "f" + ")" * 300}, "transform"),
    ({"recipe": "grad(f)" + " " * 3000}, "too long"), ({"arguments": "float64[n" + " " * 3000 + "]"}, "too long"),
    ({"arguments": "float64[100000000], float64[3], int"}, "more than 10,000,000"),
    ({"arguments": "float64[3], float64[3], int\0"}, "not kinds"), ({"arguments": "float63"}, "is not a kind"),
    ({"arguments": "(" * 900}, "not kinds"), ({"arguments": "float64[-3], float64[3], int"}, "is not a length"),
    ({"recipe": "vmap(f, in_axes=('a', 0, 0))"}, "no batches along"), ({"recipe": "vmap(f, in_axes=(0,))"}, "in_axes"),
])
def test_errors_of_a_request(served, asked, told):
    found = served[0].view(**asked)
    assert told in found["error"]["text"] and found["right"] is None


def test_classes_that_the_command_line_names(served):
    found = served[0].view(number=1, arguments="live_rod.Layer(w=f64[4], b=0.5), 2.0", timed=True)
    assert found["error"] is None and found["right"]["name"] == "grad_layer" and found["times"]["error"] is None
    found = served[0].view(number=1, arguments="collections.OrderedDict(w=f64[4]), 2.0")
    assert "is not taken from the page" in found["error"]["text"]


# --- files that change ------------------------------------------------------------------------------------------------

def changes(client):
    """The lines of the stream of changes, as they come."""
    answer = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    answer.request("GET", f"/{client.page.token}/events")
    stream = answer.getresponse()
    assert stream.getheader("Content-Type").startswith("text/event-stream")
    while True:
        line = stream.readline().decode().strip()
        if line.startswith("data: "):
            yield int(line[6:])


def test_a_saved_file(served):
    client, file = served
    stream = changes(client)
    assert "2 * u" in client.view()["right"]["text"]
    before = next(stream)
    saved(file, MODULE.replace("np.sum(u**2)", "np.sum(u**3)"))
    assert next(stream) == before + 1
    assert "3 * u ** 2" in client.view()["right"]["text"]
    saved(file, MODULE.replace("    return np.sum(u**2)", "    return np.sum(u**2"))
    assert next(stream) == before + 2
    found = client.view()
    assert "is not imported" in found["error"]["text"] and found["right"] is None
    (place,), (block,) = found["error"]["places"], found["left"]["blocks"]
    assert place["file"] == block["file"] == str(file) and "np.sum(u**2" in "\n".join(block["lines"])
    saved(file, MODULE)
    assert next(stream) == before + 3
    assert client.view()["error"] is None


def test_a_refusal_names_the_line(served):
    client, file = served
    stream = changes(client)
    next(stream)
    saved(file, MODULE.replace("np.sum(u**2)", "np.sum(np.real_if_close(u))"))
    next(stream)
    found = client.view()
    saved(file, MODULE)
    next(stream)
    assert found["error"]["kind"] == "RuleError" and found["error"]["places"][0]["line"] == 17
    assert found["left"]["blocks"][0]["lines"][0] == "def heat(u, k, steps):"


def test_a_module_that_does_not_end_and_one_that_crashes(served):
    client, file = served
    stream, workers = changes(client), client.page.workers
    before = next(stream)
    saved(file, MODULE + "\nimport os\nos._exit(3)\n")
    while next(stream) == before:
        pass
    found = client.view()
    assert "ended with status 3" in found["error"]["text"]
    workers.limit = 5.0
    saved(file, MODULE + "\nwhile True:\n    pass\n")
    next(stream)
    try:
        assert "longer than 5 seconds" in client.view()["error"]["text"]
    finally:
        workers.limit = 60.0
        saved(file, MODULE)
        next(stream)
    assert client.view()["error"] is None


def test_a_slow_function_does_not_block_the_page(served):
    """While one process is at a request, another answers; both are free afterwards."""
    client, _ = served
    workers = client.page.workers
    slow = workers._taken()
    try:
        assert [client.view()["error"], client.view(recipe="jvp(f)")["error"]] == [None, None]
        assert slow not in workers.free
    finally:
        workers._back(slow, ended=False)
    assert slow in workers.free and client.view()["error"] is None


def test_what_the_library_refuses_is_answered_alike(served):
    for method, name, status in (("PUT", "", 501), ("HEAD", "", 501), ("GET", "x" * 70_000, 414)):
        answer, content = served[0].ask(method, name)
        assert (answer.status, content) == (status, b"")
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and "Content-Security-Policy" in answer.headers


def test_a_process_ends_with_its_server(tmp_path, monkeypatch):
    """Also where it runs code of the user's that does not end."""
    (tmp_path / "live_endless.py").write_text("while True:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    worker = Worker()
    assert worker.ask({"do": "ready"}, 100.0) == {}
    worker.process.stdin.write(json.dumps({"do": "begin", "names": ["live_endless:f"], "chain": []}) + "\n")
    worker.process.stdin.flush()
    time.sleep(0.5)
    assert worker.process.poll() is None
    worker.process.stdin.close()                # as when the server is killed
    assert worker.process.wait(30) == 0
    worker.process.stdout.close()


# --- views of each transformation -------------------------------------------------------------------------------------

def rod(u, k, steps):
    for _ in range(steps):
        flow = k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
    return np.sum(u**2)


def smooth(x, w):
    y = np.tanh(x * w)
    return np.sum(y * y)


@pytest.mark.parametrize("recipe", offers(smooth))
@pytest.mark.parametrize("kinds", ["f64[3], f64[3]", "float, float", "f32[1], float", "f64[0], f64[0]"])
@pytest.mark.compiled
def test_each_transformation_is_shown(recipe, kinds):
    found = view(smooth, Asked(recipe, kinds, True, ""))
    scalar = kinds != "float, float" or "vmap" not in recipe
    assert scalar or found["error"] is None
    if found["error"] is not None:          # only where there is no such function: grad(grad(f)) of a vector
        assert recipe == "grad(grad(f))" and kinds != "float, float", found["error"]["text"]
        return
    assert found["times"]["error"] is None and found["times"]["calls"] >= 1
    text = found["right"]["text"].splitlines()
    linked = [text[link["line"] - 1] for link in found["links"] if link["from"]]
    assert linked and all(line.strip() for line in linked)
    assert all(p["function"] == "smooth" for link in found["links"] for p in link["from"])


@pytest.mark.compiled
def test_lines_of_a_compiled_function():
    found = view(rod, Asked("jit(grad(f))", KINDS, False, ""))
    text, start = found["right"]["text"].splitlines(), found["left"]["blocks"][0]["start"]
    assert found["right"]["compiled"]
    of = {text[link["line"] - 1].strip(): [p["line"] - start for p in link["from"]] for link in found["links"]}
    assert of["flow[j] = k[j] * (view_2[j] - view_3[j])"] == [2] and of["du[j] = 2 * u_1[j]"] == [6]


def test_arguments_of_transformed_functions():
    """What the page adds to the arguments of the function is what the transformed one takes."""
    x, w = np.array([0.3, 0.5, 0.1]), 0.7
    fn = made(smooth, "jvp(f)")
    args, _ = given(fn, (x, w), {}, smooth)
    value, tangent = fn(*args)
    near = (smooth(x + 1e-6, w + 1e-6) - smooth(x - 1e-6, w - 1e-6)) / 2e-6
    np.testing.assert_allclose(tangent, near, rtol=1e-8)
    args, _ = given(made(smooth, "vjp(f)"), (x, w), {}, smooth)
    np.testing.assert_allclose(made(smooth, "vjp(f)")(*args)[1], gs.grad(smooth, 1)(x, w))
    fn = made(smooth, "vmap(grad(f), in_axes=(0, None))")
    args, _ = given(fn, (x, w), {}, smooth)
    assert args[0].shape == (live_view.BATCH, 3) and args[1] == w
    np.testing.assert_allclose(fn(*args), np.stack([gs.grad(smooth)(x, w)] * live_view.BATCH))
    fn = made(rod, "jvp(f)")
    args, _ = given(fn, (np.ones(4), np.full(3, 0.1), 2), {}, rod)
    assert args[5] == 0.0 and np.isfinite(fn(*args)[1])


def test_a_function_that_is_transformed_already():
    """Its arguments are its own: nothing is added for what it was made by."""
    pushed = gs.api.jvp_of(smooth)
    found = view(pushed, Asked("f", "f64[3], float, f64[3], float", True, ""))
    assert found["error"] is None and found["right"]["name"] == "jvp_smooth" and found["left"]["name"] == "smooth"
    assert found["given"] == "float64[3], float, float64[3], float"


def test_arguments_that_are_not_given():
    assert usual_arguments(rod) == "float64[n], float, int"
    assert usual_arguments(lambda A, x: np.sum(A @ x, axis=0) * np.ones(3)) == "float64[n, m], float64[m]"


# --- the command ------------------------------------------------------------------------------------------------------

def test_a_port_that_is_taken(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["live", "colorsys:rgb_to_yiq", "--port", str(port), "--no-browser"]) == 2
        told = capsys.readouterr().err
        assert f"port {port} is taken by another program" in told and "--port" in told
    assert main(["live", "colorsys:rgb_to_yiq", "--port", "70000"]) == 2
    assert "is not a port" in capsys.readouterr().err


def test_a_function_that_is_not_there(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["live", "colorsys:nothing", "--no-browser"]) == 2
    assert "has no nothing" in capsys.readouterr().err


def test_the_command_ends_with_its_input(tmp_path):
    """As an editor starts it: it prints the address first, and ends when the editor does."""
    (tmp_path / "live_one.py").write_text("def cube(x: float):\n    print('printed')\n    return x ** 3\n")
    process = subprocess.Popen([sys.executable, "-m", "gradscribe", "live", "live_one:cube", "--jvp", "--no-browser",
                                "--until-closed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [
                                   str(ROOT), os.environ.get("PYTHONPATH")]))})
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and address.endswith("/")
        connection = http.client.HTTPConnection(address.split("/")[2], timeout=60)
        connection.request("GET", f"/{address.split('/')[3]}/start")
        assert json.loads(connection.getresponse().read())["recipe"] == "jvp_of(f)"
        connection.close()
        process.stdin.close()
        begun = time.perf_counter()
        assert process.wait(30) == 0 and time.perf_counter() - begun < 20
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_the_command_ends_quietly(tmp_path, number):
    (tmp_path / "live_two.py").write_text("def cube(x: float):\n    return x ** 3\n")
    process = subprocess.Popen([sys.executable, "-m", "gradscribe", "live", "live_two:cube", "--no-browser"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                               start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [
                                   str(ROOT), os.environ.get("PYTHONPATH")]))})
    try:
        assert process.stdout.readline().startswith("http://127.0.0.1:") and "Ctrl-C" in process.stdout.readline()
        time.sleep(0.5)
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "") and process.returncode == 0
    finally:
        process.kill()
        process.wait()
