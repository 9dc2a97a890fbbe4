"""What a report writes: escaped, balanced, unique, complete, and the same every time."""

import math
import re
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from permdist.report import Cell, Report, versions
from permdist.report.page import SCRIPT

VOID = {"img", "link", "meta"}
DASH = "\N{EN DASH}"
NASTY = "<script>alert('&\"')</script>"


class Page(HTMLParser):
    """Elements in order, with their texts; complains about tags that do not balance."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.identifiers = [], [], []
        self.feed(page)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"{tag}: an attribute twice"
        element = (tag, dict(attributes), [])
        self.elements.append(element)
        self.identifiers += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert tag not in VOID
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        for element in self.open:
            element[2].append(text)

    def find(self, tag, kind=None):
        """Texts and attributes of all elements of a tag, or of a class of it."""
        return [
            ("".join(texts), attributes)
            for name, attributes, texts in self.elements
            if name == tag and (kind is None or kind in attributes.get("class", "").split())
        ]

    def texts(self, tag, kind=None):
        return [text for text, _ in self.find(tag, kind)]


def figure():
    return Figure(figsize=(2, 1))


def full(word="plain"):
    """A report that holds everything, with one word in every place for words."""
    report = Report(word, word)
    report.facts({word: word})
    report.section(word, word)
    report.text(word)
    report.note(word)
    report.note(word, "warning")
    report.table(
        [word, "b"],
        [[word, Cell(word, 2.0, "first", word)], [Cell(word, hint=word), 1.5]],
        caption=word,
    )
    report.preformatted(word)
    report.picture(figure(), word)
    report.picture(figure(), "described", caption=word)
    report.section(word)
    report.provenance({word: word})
    return report


def table(rows, **options):
    report = Report("", "")
    report.table(["name", *"abcdefgh"[: len(rows[0]) - 1]], rows, **options)
    return Page(report.html())


@pytest.mark.parametrize("word", [NASTY, "</pre></td></style>", "a & b", "'\"", "two\nlines"])
def test_every_text_is_escaped_everywhere(word):
    parsed, plain = Page(full(word).html()), Page(full().html())
    assert [tag for tag, _, _ in parsed.elements] == [tag for tag, _, _ in plain.elements]
    assert [set(facts) for _, facts, _ in parsed.elements] == [
        set(facts) for _, facts, _ in plain.elements
    ]
    for tag in ("h1", "h2", "title", "p", "td", "th", "dt", "dd", "pre", "figcaption"):
        expected = [text.replace("plain", word) for text in plain.texts(tag)]
        assert parsed.texts(tag) == expected, tag
    for name in ("title", "alt", "aria-label"):
        values = [facts[name] for _, facts, _ in parsed.elements if name in facts]
        expected = [facts[name] for _, facts, _ in plain.elements if name in facts]
        assert values == [value.replace("plain", word) for value in expected], name
    assert len(parsed.find("script")) == len(parsed.find("style")) == 1


@given(st.lists(st.one_of(st.sampled_from(["A b", "a-b", "a b 2", "?", ""]), st.text(max_size=8))))
def test_sections_have_anchors_of_their_own_that_the_contents_lead_to(titles):
    report = Report("", "")
    for title in titles:
        report.section(title)
    parsed = Page(report.html())
    assert len(parsed.identifiers) == len(set(parsed.identifiers))
    anchors = [facts["id"] for _, facts in parsed.find("h2")]
    assert len(anchors) == len(titles)
    assert not [anchor for anchor in anchors if not anchor or re.search(r"[\s\"'<>&#%]", anchor)]
    links = [facts["href"] for _, facts in parsed.find("a")]
    listed = links[: len(titles)] if len(titles) > 1 else []
    assert links == [f"#{anchor}" for anchor in anchors] * (2 if listed else 1)


def test_the_page_needs_nothing_from_elsewhere():
    page = full().html()
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<iframe|<base|<form", page)
    parsed = Page(page)
    links = [
        facts[name] for _, facts, _ in parsed.elements for name in ("href", "src") if name in facts
    ]
    assert len(links) > 4
    assert all(link.startswith(("data:", "#")) for link in links)
    policy = next(
        facts["content"] for _, facts in parsed.find("meta") if facts.get("http-equiv") is not None
    )
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert parsed.texts("script") == [SCRIPT]


def test_the_page_says_its_language_and_fits_phones():
    parsed = Page(full().html())
    assert parsed.find("html")[0][1] == {"lang": "en"}
    names = {facts.get("name"): facts["content"] for _, facts in parsed.find("meta")[1:]}
    assert names["viewport"] == "width=device-width, initial-scale=1"
    assert names["color-scheme"] == "light dark"


def test_equal_reports_are_equal_to_the_byte():
    assert full().html() == full().html()
    report = full()
    assert report.html() == report.html()


@pytest.mark.parametrize(
    "mark", ["first", "second", "third", "worse", "null", "reference", "good", "bad"]
)
def test_marks_are_classes_and_are_explained(mark):
    parsed = table([["a", Cell("1", mark=mark)], ["b", 2]])
    assert [facts["class"] for _, facts in parsed.find("td", "mark")] == [f"mark {mark}"]
    explained = [] if mark in ("good", "bad") else [mark]  # those say it in their own words
    assert parsed.texts("span", "mark") == explained
    assert not table([["a", Cell("1")]]).find("div", "legend")


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda one: one.table(["a"], [[Cell("1", mark="frist")]]), ValueError, "mark"),
        (lambda one: one.table(["a", "b"], [["1", "2"], ["1", "2", "3"]]), ValueError, "rows"),
        (lambda one: one.table(["a", "b"], ["ab"]), TypeError, "rows"),
        (lambda one: one.table(["a"], [[None]]), TypeError, "rows"),
        (lambda one: one.facts({"a": []}), TypeError, "facts"),
        (lambda one: one.table("ab", []), ValueError, "head"),
        (lambda one: one.note("", "warn"), ValueError, "kind"),
        (lambda one: one.picture("picture.png", ""), TypeError, "figure"),
    ],
)
def test_refusals(call, error, argument):
    report = Report("", "")
    with pytest.raises(error, match=f"^{argument}: "):
        call(report)
    assert Page(report.html()).texts("main")[0].strip() == versions()  # nothing was added by halves


@pytest.mark.parametrize(
    ("number", "text"), [(10**20, "1" + 20 * "0"), (0.123456, "0.1235"), (math.nan, DASH)]
)
def test_numbers_are_shown_short(number, text):
    parsed = table([["a", number]], caption="Above")
    assert parsed.texts("td")[1] == text
    assert parsed.texts("figcaption") == ["Above"]


def test_axes_stand_for_their_figure():
    drawn = figure()
    by_figure, by_axes = Report("a", ""), Report("a", "")
    axes = drawn.add_subplot()
    by_figure.picture(drawn, "x")
    by_axes.picture(axes, "x")
    assert by_figure.html() == by_axes.html()


def sort_values(entries):
    """What the script sorts a column by: its kind, and the number it reads for each cell."""
    parsed = table([["row", entry] for entry in entries])
    kind = parsed.find("th")[1][1].get("data-kind")
    cells = parsed.find("td")[1::2]
    return kind, [facts.get("data-value", text) for text, facts in cells]


@pytest.mark.parametrize(
    ("entries", "values"),
    [
        ([1, 2.5, np.int64(3), np.float32(0.25)], ["1", "2.5", "3", "0.25"]),
        (["1", "-2.5", "1e-3", ".5"], ["1", "-2.5", "1e-3", ".5"]),
        ([0.123456, Fraction(1, 3)], ["0.123456", "0.3333333333333333"]),
        ([Cell("0.48 ± 0.01", 0.4826), Cell("0.5", 0.5)], ["0.4826", "0.5"]),
        (["12%", "\N{MINUS SIGN}3", " 4 "], ["12.0", "-3.0", "4.0"]),
        ([1, "", "-", "\N{EN DASH}", "nan", math.nan], ["1", "", "-", DASH, "nan", DASH]),
        ([Cell("0.5", math.nan), 1], ["nan", "1"]),
    ],
)
def test_columns_of_numbers_carry_the_numbers_they_are_sorted_by(entries, values):
    assert sort_values(entries) == ("number", values)


@pytest.mark.parametrize(
    "entries", [["1", "b"], ["1.2.3"], ["1_000"], ["٣"], ["", "-"], [Cell("x", 1), "y"], ["inf"]]
)
def test_other_columns_are_sorted_as_texts(entries):
    kind, values = sort_values(entries)
    assert kind is None
    assert values == [entry.text if isinstance(entry, Cell) else entry for entry in entries]


def test_tables_sort_where_that_makes_sense():
    rows = [["a", 1], ["b", 2]]
    assert "data-sortable" in table(rows).find("table")[0][1]
    assert "data-sortable" not in table(rows, sortable=False).find("table")[0][1]
    assert "data-sortable" not in table(rows[:1]).find("table")[0][1]


def test_pictures_state_their_size_and_are_always_there():
    report = Report("", "")
    report.picture(figure(), "Nothing")
    report.picture(figure(), "Nothing", "")
    parsed = Page(report.html())
    _, facts = parsed.find("img")[0]
    assert (facts["width"], facts["height"]) == ("192", "96")
    assert "loading" not in facts  # a picture that waits for its reader is missing in print
    assert facts["src"].startswith("data:image/png;base64,iVBOR")
    assert parsed.texts("figcaption") == ["Nothing", ""]


def test_provenance_is_the_last_section_whenever_it_is_given():
    report = Report("", "")
    report.provenance({"seed": 3})
    report.section("How this was made", "By hand.")
    report.provenance({"command": "permdist demo", "versions": "not these"})
    parsed = Page(report.html())
    assert parsed.texts("h2") == ["How this was made"] * 2
    assert [facts["id"] for _, facts in parsed.find("h2")][1] == "how-this-was-made-2"
    assert parsed.texts("dt") == ["seed", "command", "versions"]
    assert parsed.texts("dd") == ["3", "permdist demo", versions()]
    assert not parsed.find("footer")
    bare = Report("", "")
    bare.provenance({})
    assert Page(bare.html()).texts("dt") == ["versions"]


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    report, path = full("é"), tmp_path / "report.html"
    report.save(str(path))
    assert path.read_bytes() == report.html().encode()

    def fail(source, target):
        raise OSError(28, "No space left on device", source)

    monkeypatch.setattr("os.replace", fail)
    before = path.read_bytes()
    with pytest.raises(OSError, match=r"report\.html: cannot be written \(No space left on device"):
        Report("another", "").save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none/r\.html: cannot be written"):
        Report("", "").save(tmp_path / "none" / "r.html")
