"""The explorer in a real browser: keyboard, phone, dark theme, shared files without a network."""

import threading

import numpy as np
import pytest
from test_report_browser import CONTRASTS

from permdist import GaussianScores, GoodBad, Mallows, PlackettLuce, explorer
from permdist.explorer.settings import EXAMPLE

LABELS = EXAMPLE["labels"]


@pytest.fixture(scope="module")
def server():
    def opened(query):
        return explorer.of_query([0.3, 0.1], [1, 0], ["u", "v"], title=f"Query {query}")

    source = explorer.Source(queries=["1", "2"], query="1", open_query=opened)
    with explorer.Server(source) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def show(browser, server):
    """Open a page; it must complain about nothing and ask nobody but its server."""
    contexts, complaints, requests = [], [], []

    def opened(address=None, width=1280, height=900, *, quiet=True, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        if quiet:
            page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address or server.url)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    allowed = (server.url, "file:", "data:", "blob:")
    assert [url for url in requests if not url.startswith(allowed)] == []


def table(page, name):
    """Return the numbers of a table, all their digits; NaN where there are none."""
    found = page.locator(f"#{name} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td:not(.mean)')]"
        ".map(cell => cell.dataset.value ?? ''))"
    )
    return np.array([[float(one) if one else np.nan for one in row] for row in found])


def expected(page):
    return dict(
        page.locator("#expected td[data-measure]").evaluate_all(
            "cells => cells.map(cell => [cell.dataset.measure, Number(cell.dataset.value)])"
        )
    )


def settle(page, text=""):
    """Wait until the answer to the last change is there; check what the page says about it."""
    page.wait_for_selector("#answers[aria-busy=false]")
    assert text in page.locator("#status").inner_text()


def press(page, label, key, times=1):
    """Press a key on a control; return when the answer is there."""
    control = page.get_by_label(label, exact=True)
    control.focus()
    for _ in range(times):
        page.keyboard.press(key)
    settle(page)
    return control


def matches(page, own, exact=True):
    """Compare all that the page shows with a distribution."""
    tolerance = 1e-12 if exact else 0.04
    pairs = np.asarray(own.pairwise())
    np.fill_diagonal(pairs, np.nan)
    np.testing.assert_allclose(table(page, "marginals"), own.rank_marginals(), atol=tolerance)
    np.testing.assert_allclose(table(page, "pairwise"), pairs, atol=tolerance)
    for measure, value in expected(page).items():
        assert value == pytest.approx(own.expect(measure, LABELS), abs=tolerance), measure


def test_arrow_keys_move_a_score_and_all_numbers_follow(show):
    page = show()
    scores = np.array(EXAMPLE["scores"])
    matches(page, PlackettLuce(scores))
    slider = press(page, "Score of cola", "ArrowRight", 3)
    moved = float(slider.input_value())
    assert moved > -0.9
    assert page.get_by_label("Score of cola, as a number").input_value() == slider.input_value()
    scores[4] = moved
    matches(page, PlackettLuce(scores))
    settle(page, "All answers are exact; computed in")
    press(page, "Noise", "ArrowLeft", 4)
    noise = 2.0**-0.2
    np.testing.assert_allclose(
        table(page, "marginals"), PlackettLuce(scores / noise).rank_marginals(), atol=1e-6
    )


def test_models_labels_measures_and_items_are_changed(show):
    page = show()
    scores = np.array(EXAMPLE["scores"])
    page.get_by_label("Model").select_option("gaussian")
    settle(page, "computed in")
    matches(page, GaussianScores(scores))
    page.get_by_label("Model").select_option("good-bad")
    page.get_by_label("Label of milk").fill("1")
    page.get_by_label("Measures", exact=True).fill("rr, ndcg@2[gain=linear]")
    settle(page)
    own = GoodBad(scores, [2, 1, 1, 0, 0], scale=0.2)
    np.testing.assert_allclose(table(page, "marginals"), own.rank_marginals(), atol=1e-12)
    assert list(expected(page)) == ["rr", "ndcg@2[gain=linear]"]
    page.get_by_role("button", name="Remove water").click()
    settle(page)
    assert page.locator("#marginals tbody tr").count() == 4
    page.get_by_role("button", name="Add an item").click()
    settle(page)
    assert page.locator("#marginals tbody tr").count() == 5
    page.keyboard.type("fizz ")  # the name of the new item has the focus
    settle(page)
    assert "fizz" in page.locator("#marginals").inner_text()
    before = page.locator("#draws").inner_text()
    page.get_by_role("button", name="Draw again").click()
    settle(page)
    assert page.locator("#draws").inner_text() != before
    page.get_by_role("button", name="Start over").click()
    settle(page)
    matches(page, PlackettLuce(scores))


def test_a_mistake_is_told_and_mended_and_another_query_opened(show):
    page = show(quiet=False)  # the browser itself notes that an answer was refused
    page.get_by_label("Measures", exact=True).fill("ndgc")
    settle(page, "ndgc")
    assert page.locator("#status").get_attribute("class") == "wrong"
    page.get_by_label("Measures", exact=True).fill("ap")
    settle(page, "exact")
    assert page.locator("#status").get_attribute("class") == ""
    page.get_by_label("Name of item 2").fill("tea")
    settle(page, "names: must be unique; 'tea' appears more than once")
    page.get_by_label("Query").fill("2")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:text('Query 2')")
    settle(page)
    np.testing.assert_allclose(
        table(page, "marginals"), PlackettLuce([0.3, 0.1]).rank_marginals(), atol=1e-12
    )


def test_every_control_is_reached_by_the_keyboard_and_shows_its_focus(show):
    page = show()
    page.evaluate("document.body.focus()")
    number = page.locator("#controls :is(input, select, button):visible").count()
    seen = set()
    for _ in range(number + 1):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "[document.activeElement.ariaLabel || document.activeElement.labels?.[0]?.textContent"
            " || document.activeElement.textContent,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        assert outline == "solid", name
        seen.add(name)
    wanted = {"Query", "Model", "Noise", "Measures", "Save as HTML", "Draw again", "Start over"}
    wanted |= {f"Score of {name}" for name in EXAMPLE["names"]}
    wanted |= {f"Label of {name}" for name in EXAMPLE["names"]}
    assert wanted <= seen


@pytest.mark.parametrize("width", [390, 1280])
def test_it_can_be_read_in_both_themes_and_on_a_phone(show, width):
    page = show(width=width, height=844, color_scheme="light")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#brief").is_visible() == (width == 390)
    is_readable(page, "light")
    page.emulate_media(color_scheme="dark")
    is_readable(page, "dark")


def is_readable(page, theme):
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = max(map(int, ground.removeprefix("rgb(").removesuffix(")").split(",")))
    assert brightness < 40 if theme == "dark" else brightness > 240
    texts = (".hint", "#status", "label", "legend", "select", "#controls input", ".buttons button")
    for text in (*texts, "#expected td", "#marginals th", "#draws li", "#rows output"):
        assert min(page.evaluate(CONTRASTS, text)) >= 4.5, text
    # Behind chances the colors are mixed, which the browser reports as parts of one.
    mixed = CONTRASTS.replace(
        "parse = (text) => text.match(/[0-9.]+/g).map(Number)",
        "parse = (text) => text.match(/[0-9.]+/g).map(Number)"
        ".map((c, i, all) => text.startsWith('color(') && i < 3 ? 255 * c : c)",
    )
    for text in ("#marginals td[title]", "#pairwise td[title]"):
        assert min(page.evaluate(mixed, text)) >= 4.5, text


def test_many_items_are_drawn_as_a_picture(show, tmp_path):
    setting = {"scores": np.linspace(2, -2, 30).tolist(), "labels": [1, 0] * 15}
    names = [f"document {number}" for number in range(30)]
    source = explorer.Source({**EXAMPLE, **setting, "names": names})
    path = tmp_path / "many.html"
    path.write_text(explorer.page(source))
    page = show(path.as_uri(), width=390, color_scheme="dark")
    assert page.get_by_role("img", name="Rank marginals of 30 items").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    press(page, "Score of document 0", "ArrowLeft")
    settle(page, "computed by this file")


# ---- shared files ------------------------------------------------------------------------------


def test_a_saved_page_works_from_a_file_without_a_network(show, server, tmp_path):
    page = show()
    press(page, "Score of tea", "ArrowLeft", 2)
    scores = np.array(EXAMPLE["scores"])
    scores[0] = float(page.get_by_label("Score of tea", exact=True).input_value())
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as HTML").click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    page = show(path.as_uri(), offline=True)
    matches(page, PlackettLuce(scores))
    settle(page, "computed by permdist when this file was saved")
    assert "Live, computed by the file itself" in page.locator("#frozen").inner_text()
    # It moves by itself, with the same numbers.
    slider = press(page, "Score of cola", "ArrowRight", 3)
    scores[4] = float(slider.input_value())
    matches(page, PlackettLuce(scores))
    page.get_by_label("Model").select_option("gaussian")
    settle(page, "estimates from draws")
    matches(page, GaussianScores(scores), exact=False)
    page.get_by_label("Model").select_option("mallows-kendall")
    settle(page, "estimates from draws")
    matches(page, Mallows(np.argsort(-scores), 1.0), exact=False)
    assert not page.get_by_role("button", name="Save as HTML").is_visible()


def test_the_files_own_numbers_are_those_of_the_library(show, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(explorer.page(explorer.Source()))
    page = show(path.as_uri())
    own = "setting => port.answer(setting)"
    measures = ["ndcg", "ndcg@3", "map", "rr", "auc", "p@2"]
    few = {**EXAMPLE, "measures": measures, "noise": 0.7}
    for changed in ({}, {"scores": [800.0, -700.0, 0.0, 1.0, 2.0]}, {"labels": [0, 3, 1, 1, 2]}):
        setting = few | changed
        found, wanted = page.evaluate(own, setting), explorer.answer(setting)
        for name in ("rank_marginals", "pairwise"):
            np.testing.assert_allclose(
                found[name]["values"], wanted[name]["values"], atol=1e-12, err_msg=name
            )
        for one, two in zip(found["expected"], wanted["expected"], strict=True):
            assert one["draws"] == 0
            assert one["value"] == pytest.approx(two["value"], abs=1e-12), two
            assert one["by_score"] == pytest.approx(two["by_score"], abs=1e-12)
    rng = np.random.default_rng(0)
    many = {"scores": rng.normal(size=11).tolist(), "labels": rng.integers(0, 3, 11).tolist()}
    for model in ("plackett-luce", "gaussian", "mallows-kendall"):
        setting = {**many, "model": model, "noise": 0.7, "measures": measures, "seed": 3}
        found, wanted = page.evaluate(own, setting), explorer.answer(setting)
        for name in ("rank_marginals", "pairwise"):
            one, two = np.array(found[name]["values"]), np.array(wanted[name]["values"])
            error = 5.0 * np.sqrt(two * (1.0 - two) / 4000) + 1e-3
            assert (np.abs(one - two) < error).all(), (model, name)
        for one, two in zip(found["expected"], wanted["expected"], strict=True):
            assert one["draws"] == 4000
            error = 5.0 * np.hypot(one["standard_error"], two["standard_error"])
            assert abs(one["value"] - two["value"]) < error, (model, two["measure"])
    nothing = page.evaluate(own, {**few, "labels": [0] * 5, "measures": ["ap", "err"]})
    assert [one["value"] for one in nothing["expected"]] == [None, None]


def test_what_a_file_cannot_compute_is_frozen(show, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(explorer.page(explorer.Source(EXAMPLE | {"model": "good-bad"})))
    page = show(path.as_uri(), offline=True)
    matches(page, GoodBad(EXAMPLE["scores"], LABELS, scale=0.2))
    assert page.get_by_label("Score of tea", exact=True).is_disabled()
    options = page.locator("#model option")
    assert options.filter(has_text="(frozen)").inner_text() == "Good-bad pairs (frozen)"
    assert "Good-bad pairs, with the answers that permdist computed" in (
        page.locator("#frozen").inner_text()
    )
    page.get_by_label("Model").select_option("plackett-luce")
    settle(page, "computed by this file")
    assert page.get_by_label("Score of tea", exact=True).is_enabled()
    matches(page, PlackettLuce(EXAMPLE["scores"]))
    page.get_by_role("button", name="Start over").click()
    settle(page, "when this file was saved")
    matches(page, GoodBad(EXAMPLE["scores"], LABELS, scale=0.2))
