"""The live page in headless Chromium: by keyboard, with the names that a screen reader says, and redrawn on saving."""
import re
import shutil
from pathlib import Path

import pytest
from review.pages import KINDS, MODULE, serving

import gradscribe
from gradscribe.live import Wanted

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ASSETS = Path(gradscribe.__file__).parent / "live_assets"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no browser")]
READY = "main[aria-busy=false]"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(page, the module's file)"""
    wanted = Wanted(["live_seen:heat"], [("grad", "u,k")], KINDS)
    with serving(tmp_path_factory.mktemp("live"), wanted) as made:
        yield made


@pytest.fixture
def view(browser, served):
    """The page in a tab; what its console says is an error of the test."""
    tab, said = browser.new_page(viewport={"width": 1200, "height": 800}), []
    tab.set_default_timeout(60_000)
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(served[0].address)
    tab.wait_for_selector(READY)
    yield tab
    tab.close()
    assert said == []


def lit(view, side):
    return [text.strip() for text in view.locator(f"#{side} .cm-line.lit").all_inner_texts()]


def on(view, side, text):
    return view.locator(f"#{side} .cm-line").get_by_text(text, exact=True).first


def test_names_of_all_that_can_be_used(view):
    """Each control and each text has a role and a name; nothing that takes the focus is without."""
    for role, name in [("combobox", "Transformation"), ("textbox", "as text"), ("textbox", "Arguments of f"),
                       ("checkbox", "Time each line"), ("button", "Show"), ("textbox", "heat"),
                       ("textbox", "grad_heat"), ("button", "Search in the function"),
                       ("button", "Search in the transformation"), ("region", "heat"), ("region", "grad_heat"),
                       ("heading", "Gradscribe live")]:
        assert view.get_by_role(role, name=name, exact=True).count() == 1, (role, name)
    assert view.locator("html").get_attribute("lang") == "en"
    assert view.title() == "grad_heat - Gradscribe live"
    nameless = view.evaluate("""() => [...document.querySelectorAll('input, select, button, [tabindex]')].filter(e =>
        e.offsetParent && !(e.labels && e.labels.length) && !e.getAttribute('aria-label') &&
        !e.getAttribute('aria-labelledby') && !e.textContent.trim()).map(e => e.outerHTML)""")
    assert nameless == []


def test_by_keyboard_alone(view):
    """From field to text by Tab, along its lines by arrows, to the counterpart by Enter, and on by Tab."""
    for _ in range(30):
        view.keyboard.press("Tab")
        if view.evaluate("document.activeElement.closest('#left .cm-content') !== null"):
            break
    view.keyboard.press("Control+Home")
    for _ in range(4):
        view.keyboard.press("ArrowDown")
    assert lit(view, "left") == ["u[:-1] += flow"]
    assert "u[:-1] += flow" in lit(view, "right") and "dflow = du[:-1] - du[1:]" in lit(view, "right")
    told = view.get_by_role("status").first.inner_text()
    assert re.match(r"Line 8 of heat became lines \d+, \d+ and \d+ of grad_heat\.", told), told
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.closest('#right') !== null")
    told = view.get_by_role("status").first.inner_text()
    assert "comes from line 8 of heat: u[:-1] += flow" in told
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.closest('#left') !== null")
    view.keyboard.press("Tab")              # no trap
    assert view.evaluate("document.activeElement.closest('#left .cm-content') === null")


def test_the_texts_cannot_be_edited(view):
    before = view.locator("#left .cm-content").inner_text()
    on(view, "left", "u = u.copy()").click()
    view.keyboard.type("abc")
    view.keyboard.press("Backspace")
    view.keyboard.press("Delete")
    assert view.locator("#left .cm-content").inner_text() == before


def test_hover(view):
    on(view, "left", "flow = k * (u[1:] - u[:-1])").hover()
    assert lit(view, "left") == ["flow = k * (u[1:] - u[:-1])"]
    assert "dk += dflow * (u[1:] - u[:-1])" in lit(view, "right")
    on(view, "right", "du = 2 * u").hover()
    assert lit(view, "right") == ["du = 2 * u"] and lit(view, "left") == ["return np.sum(u**2)"]
    place = on(view, "right", "du = 2 * u").bounding_box()
    for k in range(3):
        view.mouse.move(place["x"] + 12 + k, place["y"] + 8)
    tip = view.locator(".cm-tooltip .why")
    tip.wait_for()
    assert "comes from line 10 of heat: return np.sum(u**2)" in tip.inner_text()


def test_search(view):
    view.get_by_role("button", name="Search in the transformation").press("Enter")
    view.get_by_role("textbox", name="Find").wait_for()
    view.keyboard.type("dflow")
    view.locator("#right .cm-searchMatch").first.wait_for()
    assert set(view.locator("#right .cm-searchMatch").all_inner_texts()) == {"dflow"}
    view.keyboard.press("Enter")
    assert view.locator("#right .cm-searchMatch-selected").count() == 1
    view.keyboard.press("Escape")
    view.get_by_role("textbox", name="Find").wait_for(state="detached")
    assert view.evaluate("document.activeElement.closest('#right .cm-content') !== null")


def test_another_transformation_and_other_arguments(view):
    offers = view.get_by_role("combobox", name="Transformation")
    offers.focus()
    offers.select_option("grad(grad(f))")
    view.wait_for_selector("#error:not(:empty)")
    assert "scalar" in view.get_by_role("alert").inner_text()
    recipe = view.get_by_role("textbox", name="as text")
    assert recipe.input_value() == "grad(grad(f))"
    recipe.fill("vmap(grad(f), in_axes=(0, None, None))")
    recipe.press("Enter")
    view.get_by_role("heading", name="vmap_grad_heat").wait_for()
    assert view.get_by_role("alert").inner_text() == ""
    view.get_by_role("textbox", name="Arguments of f").fill("f32[n], float, 2")
    view.get_by_role("textbox", name="Arguments of f").press("Enter")
    view.get_by_text("vmap_grad_heat for float32[n, m], float, int").wait_for()
    view.reload()                                       # all of it is kept
    view.get_by_text("vmap_grad_heat for float32[n, m], float, int").wait_for()


def test_times(view):
    box = view.get_by_role("checkbox", name="Time each line")
    box.focus()
    view.keyboard.press("Space")
    view.locator("#right .cm-heat .bar").first.wait_for()
    widths = view.locator("#right .cm-heat .bar").evaluate_all("bars => bars.map(b => parseInt(b.style.width))")
    assert max(widths) == 100 and len(widths) > 10
    told = view.locator("#state").inner_text()
    assert re.search(r"A call takes [\d.]+ [µmn]?s; with the clock between its lines", told)
    view.get_by_text("Slowest lines").click()
    rows = view.get_by_role("row")
    assert 5 <= rows.count() <= 13 and "passes" in rows.first.inner_text()
    on(view, "right", "du = 2 * u").click()
    assert re.search(r"It takes [\d.]+ [µmn]?s, [\d.]+ % of a call, in 1 pass\.", view.locator("#told").inner_text())


def test_a_saved_file(view, served):
    """The page is drawn again where it stood; an error is shown at its line, and goes when it is mended."""
    _, file = served
    on(view, "left", "u = u.copy()").click()
    file.write_text(MODULE.replace("u**2", "u**3"))
    on(view, "right", "du = 3 * u ** 2").wait_for()
    assert on(view, "left", "return np.sum(u**3)").count() == 1
    view.wait_for_selector(READY)
    assert lit(view, "left") == ["u = u.copy()"]
    file.write_text(MODULE.replace("np.sum(u**2)", "np.sum(np.real_if_close(u))"))
    view.wait_for_selector("#error:not(:empty)")
    assert "real_if_close has no derivative rule" in view.get_by_role("alert").inner_text()
    assert view.locator("#left .cm-line.wrong").inner_text().strip() == "return np.sum(np.real_if_close(u))"
    file.write_text(MODULE)
    on(view, "right", "du = 2 * u").wait_for()
    assert view.get_by_role("alert").inner_text() == ""
    assert view.locator("#left .cm-line.wrong").count() == 0


def test_narrow_and_dark(browser, served):
    tab = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    tab.goto(served[0].address)
    tab.wait_for_selector(READY)
    first, second = (tab.locator(f"#{side}").bounding_box() for side in ("left", "right"))
    assert second["y"] >= first["y"] + first["height"] and first["width"] > 300
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    tab.close()


OUTER = """<!doctype html><script>
window.said = [];
window.addEventListener("message", event => said.push(event.data));
</script><iframe id="page" style="width:1000px;height:700px" src="%s"></iframe>"""


def framed(browser, served, admitted):
    """A tab of another origin, with the page in a frame; admitted: without the header that says who may frame it."""
    tab, address = browser.new_context().new_page(), served[0].address
    tab.route("http://localhost:9/", lambda route: route.fulfill(content_type="text/html", body=OUTER % address))
    if admitted:
        tab.route(address, lambda route: route.fulfill(body=route.fetch().body(), content_type="text/html"))
    tab.goto("http://localhost:9/")
    return tab


def test_another_site_cannot_frame_it(browser, served):
    tab = framed(browser, served, False)
    tab.wait_for_timeout(1500)
    assert not any(frame.locator("#left .cm-line").count() for frame in tab.frames if frame.url.startswith("http://127"))
    tab.context.close()


def test_in_the_frame_of_an_editor(browser, served):
    """The page lights up the line of the editor's cursor, and names the line that is double-clicked."""
    tab = framed(browser, served, True)
    frame = tab.frame_locator("#page")
    frame.locator(READY).wait_for()
    tab.evaluate("""file => document.getElementById("page").contentWindow.postMessage(
        {gradscribe: "caret", file, line: 8}, "*")""", str(served[1]))
    frame.locator("#left .cm-line.lit").wait_for()
    assert frame.locator("#left .cm-line.lit").inner_text().strip() == "u[:-1] += flow"
    frame.locator("#left .cm-line").nth(5).dblclick()
    tab.wait_for_function("said.length > 0")
    assert tab.evaluate("said[0]") == {"gradscribe": "open", "file": str(served[1]), "line": 9}
    tab.context.close()


def test_contrast():
    """Texts on the grounds that they stand on: at least 4.5 to 1, in both themes (WCAG 2.2, 1.4.3)."""
    def luminance(colour):
        parts = [int(c * 2 if len(colour) == 4 else c, 16) / 255 for c in re.findall(
            "." if len(colour) == 4 else "..", colour[1:])]
        return sum(w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
                   for w, c in zip((0.2126, 0.7152, 0.0722), parts))
    themes = re.findall(r":root \{(.*?)\}", (ASSETS / "live.css").read_text(encoding="utf-8"), re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#\w+);", theme))
        for ink, grounds in {"ink": "paper lit heat field", "faint": "paper lit field", "keyword": "paper lit",
                             "number": "paper lit", "string": "paper lit", "bad": "paper"}.items():
            for ground in grounds.split():
                a, b = sorted((luminance(colours[ink]), luminance(colours[ground])))
                assert (b + 0.05) / (a + 0.05) >= 4.5, (ink, ground)
