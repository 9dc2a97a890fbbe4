"""A report as a person meets it: in a real browser, on wide and narrow screens, by day and night.

Skipped where playwright or a Chromium is missing.
"""

import numpy as np
import pytest

from permdist import PlackettLuce, data, measures, plots
from permdist.report import Cell, Report

DASH = "\N{EN DASH}"
HEAD = ["ranking", "MAP", "NDCG@10", "NDCG", "P@5", "RR", "AUC", "queries"]
NAMES = ["map", "ndcg@10", "ndcg", "p@5", "rr", "auc[empty=skip]"]


def sample():
    """A report with everything a report can hold."""
    queries = data.make_letor(60, n_features=15, n_constant=0, rng=0)
    found = {
        f"feature {j + 1}": measures.evaluate(queries.X[:, j], queries.y, queries.qid, NAMES)
        for j in range(15)
    }
    means = np.array([[result.mean(name) for name in result] for result in found.values()])
    places = (-means).argsort(axis=0, kind="stable").argsort(axis=0)
    report = Report(
        "Fifteen features as rankings",
        "A simulated collection of 60 queries (seed 0), ranked by each of its 15 features and "
        "evaluated by six measures.",
    )
    report.facts(
        {
            "queries": 60,
            "documents": queries.n_documents,
            "features": 15,
            "best mean average precision": float(means[:, 0].max()),
        }
    )
    report.section("The comparison", "Means over queries. The three best of a column are marked.")
    rows = []
    for j, (name, result) in enumerate(found.items()):
        row = [name if j else Cell("feature 1, as it is", hint="Not changed in any way")]
        for k, measure in enumerate(result):
            error = result.standard_error(measure)
            mark = ("first", "second", "third", *[""] * 9, *["worse"] * 3)[places[j, k]]
            row.append(Cell(f"{means[j, k]:.4f}", means[j, k], mark, f"± {error:.4f}"))
        rows.append([*row, result.n_queries(measure)])
    report.table(HEAD, rows, caption="Fifteen rankings by six measures, in file order.")
    report.note("Standard errors are shown when you point at a number or tap it.")
    report.picture(plots.means(found).figure, "Means of all measures for all features")
    report.section("Where they differ")
    report.text("Some queries are easy for every feature, and some for none.")
    spread = {name: found[name] for name in list(found)[:3]}
    report.picture(
        plots.sorted_values(spread, "ap").figure,
        "Three falling lines",
        "Average precision of every query under three features, best first.",
    )
    report.picture(plots.collection(queries).figure, "Documents of each query")
    report.section("A model", "Where four drinks may stand, and how it was checked.")
    model = PlackettLuce([1.2, 0.4, 0.0, -0.9], ["tea", "milk", "juice", "cola"])
    report.picture(plots.marginals(model).figure, "Where each drink may stand")
    report.table(
        ["check", "what it says", "largest residual", "verdict"],
        [
            ["rows", "The places of an item sum to one, whatever the scores.", 2.5e-16, "holds"],
            ["columns", "The items at a place sum to one.", 1e-15, Cell("holds", mark="good")],
            ["none", "A check that nobody ran.", float("nan"), Cell("not run", mark="bad")],
            ["large", "A residual that is larger as a number only.", 10, ""],
        ],
    )
    report.note("One check was not run.", "warning")
    report.section("Raw numbers")
    report.preformatted(
        "\n".join(
            f"{name:<12}" + "  ".join(f"{measure} {result.mean(measure):.6f}" for measure in result)
            for name, result in found.items()
        )
    )
    report.provenance({"seed": 0, "command": "pytest tests/test_report_browser.py"})
    return report


@pytest.fixture(scope="module")
def address(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    sample().save(path)
    return path.as_uri()


@pytest.fixture
def show(browser, address):
    """Open the sample; whatever the page complains about or asks for must be nothing."""
    contexts, complaints, requests = [], [], []

    def opened(width=1280, height=900, *, before=None, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        if before:
            page.add_init_script(before)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if url != address and not url.startswith("data:")] == []


def column(page, table, number):
    cells = page.locator("table").nth(table).locator(f"tbody tr td:nth-child({number + 1})")
    return cells.all_inner_texts()


def header(page, table, number):
    return page.locator("table").nth(table).locator("th").nth(number)


def test_a_click_on_a_header_sorts_numbers_as_numbers_and_a_second_one_reverses(show):
    page = show()
    assert column(page, 1, 2) == ["2.5e-16", "1e-15", DASH, "10"]
    head = header(page, 1, 2)
    assert head.get_attribute("aria-sort") is None
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, 1, 2) == ["10", "1e-15", "2.5e-16", DASH]
    assert column(page, 1, 0) == ["large", "columns", "rows", "none"]
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, 1, 2) == ["2.5e-16", "1e-15", "10", DASH]


def test_texts_are_sorted_as_texts_with_equal_ones_in_place_and_empty_ones_last(show):
    page = show()
    head = header(page, 1, 3)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, 1, 0) == ["rows", "columns", "none", "large"]
    head.get_by_role("button").click()
    assert column(page, 1, 0) == ["none", "rows", "columns", "large"]
    header(page, 0, 0).get_by_role("button").click()  # numbers inside texts count as numbers
    assert column(page, 0, 0)[1:] == [f"feature {number}" for number in range(2, 16)]
    assert head.get_attribute("aria-sort") == "descending"  # each table has an order of its own


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_headers_are_worked_from_the_keyboard(show, key):
    page = show()
    first, second = header(page, 0, 1), header(page, 0, 2)
    first.get_by_role("button").focus()
    page.keyboard.press(key)
    values = list(map(float, column(page, 0, 1)))
    assert values == sorted(values, reverse=True)
    page.keyboard.press("Tab")
    page.keyboard.press(key)
    assert first.get_attribute("aria-sort") is None  # one column at a time
    assert second.get_attribute("aria-sort") == "descending"
    values = list(map(float, column(page, 0, 2)))
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("script", [True, False])
def test_a_narrow_page_does_not_move_sideways_but_its_tables_do(show, script):
    page = show(360, 740, java_script_enabled=script)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator(".scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    box.evaluate("box => { box.scrollLeft = 200; box.scrollTop = 60; }")
    # The first column and the header stay where they can be seen.
    stays = """box => {
        const frame = box.getBoundingClientRect();
        const name = box.querySelector("tbody tr:nth-child(5) td").getBoundingClientRect();
        const head = box.querySelector("th:nth-child(4)").getBoundingClientRect();
        return [box.scrollLeft, name.left - frame.left, head.top - frame.top];
    }"""
    moved, left, top = box.evaluate(stays)
    assert moved == 200
    assert abs(left) < 1
    assert abs(top) < 1


def test_contents_are_at_the_side_or_folded(show):
    page = show()
    link = page.get_by_role("navigation").get_by_role("link", name="Raw numbers")
    link.click()
    assert page.url.endswith("#raw-numbers")
    assert link.is_visible()  # it stays in sight
    page.wait_for_selector("nav a[aria-current]")
    page = show(390, 844)
    link = page.get_by_role("navigation").get_by_role("link", name="Raw numbers")
    assert not link.is_visible()
    page.locator("summary").click()
    link.click()
    assert not link.is_visible()
    heading = page.get_by_role("heading", name="Raw numbers")
    assert 0 <= heading.bounding_box()["y"] < 844


# Every text against what lies behind it, by the formula of the WCAG.
CONTRASTS = """selector => {
    const parse = (text) => text.match(/[0-9.]+/g).map(Number);
    const light = (color) => color.slice(0, 3)
        .map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const color = parse(getComputedStyle(e).backgroundColor);
            if ((color[3] ?? 1) === 1) return color;
        }
        throw new Error("nothing behind the text");
    };
    return [...document.querySelectorAll(selector)].map((element) => {
        const one = light(parse(getComputedStyle(element).color));
        const two = light(ground(element));
        return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    });
}"""
TEXTS = [
    *("main > p", ".summary", "h1", "h2", "h2 a", "nav a", "td", "th button", "figcaption", "pre"),
    *(".first", ".second", ".third", ".worse", ".good", ".bad", ".hinted", ".theme"),
    *(".facts dt", ".facts dd", ".note", ".note strong", ".provenance dt", ".provenance dd"),
]


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read(show, theme, width):
    page = show(width, color_scheme=theme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = max(map(int, ground.removeprefix("rgb(").removesuffix(")").split(",")))
    assert brightness < 40 if theme == "dark" else brightness > 240
    page.locator("td.worse").first.hover()
    for texts in TEXTS:
        ratios = page.evaluate(CONTRASTS, texts)
        assert ratios, f"there is no {texts}"
        assert min(ratios) >= 4.5, texts
    tip = page.locator(".tip")
    page.locator("td[title]").first.click()
    assert tip.inner_text() == "Not changed in any way"
    assert min(page.evaluate(CONTRASTS, ".tip")) >= 4.5
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_the_theme_is_chosen_and_remembered(show):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = show(color_scheme="light")
    light = page.evaluate(ground)
    page.get_by_role("button", name="Dark theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(ground) == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) == light  # what was chosen outweighs what the system prefers


def test_a_page_that_may_not_remember_still_works(show):
    denied = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }})"
    page = show(color_scheme="dark", before=denied)
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_picture_is_enlarged_and_escape_closes_it(show, width):
    page = show(width, 844)
    button = page.get_by_role("button", name="Enlarge: Three falling lines")
    before = button.bounding_box()["width"]
    button.click()
    dialog = page.get_by_role("dialog")
    assert dialog.is_visible()
    large = dialog.get_by_role("img", name="Three falling lines")
    assert large.bounding_box()["width"] > 1.2 * before
    assert "under three features, best first." in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert button.evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    assert dialog.is_visible()
    dialog.get_by_role("button", name="Close").click()
    assert not dialog.is_visible()


def test_pictures_take_their_place_before_they_are_loaded(show):
    page = show()
    images = page.locator(".picture img")
    assert images.count() == 4
    for image in images.all():
        box = image.bounding_box()
        image.scroll_into_view_if_needed()
        image.evaluate("image => image.decode()")
        after = image.bounding_box()
        assert (after["width"], after["height"]) == (box["width"], box["height"])
        assert image.evaluate("image => image.naturalWidth") == 2 * round(box["width"])


SEEN = """selector => [...document.querySelectorAll(selector)].map((element) => {
    const box = element.getBoundingClientRect();
    const seen = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    return seen && box.width > 0 && box.height > 0;
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_everything_is_there_without_javascript(show, width):
    page = show(width, java_script_enabled=False)
    for parts in ("h1", "h2", "p", "td", "th", "dt", "dd", ".note", "pre", "img", "figcaption"):
        seen = page.evaluate(SEEN, parts)
        assert seen, f"there is no {parts}"
        assert all(seen), parts
    assert page.get_by_role("button").count() == 0  # nothing that would do nothing
    links = page.locator("nav li a")
    assert links.count() == 5
    if width < 1000:
        page.locator("summary").click()
    assert all(link.is_visible() for link in links.all())


def test_paper_is_white_and_shows_whole_tables(show):
    page = show(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".theme").is_visible()
    assert not page.locator("nav").is_visible()
    for box in page.locator(".scroll, pre").all():
        assert box.evaluate("box => getComputedStyle(box).overflow") == "visible"
