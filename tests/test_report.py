"""What a report writes: escaped, balanced, unique, complete, and the same every time."""

import math
import re
import stat
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from permdist import __version__
from permdist.report import Cell, Report, versions
from permdist.report.page import SCRIPT, STYLE

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


def test_a_report_of_nothing_is_a_page():
    parsed = Page(Report("", "").html())
    assert parsed.texts("footer") == [versions()]
    assert not parsed.find("nav")
    assert Page(full("").html()).texts("td") == ["", "", "", "1.5"]


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


def test_equal_titles_get_different_anchors():
    report = Report("", "")
    for title in ("A title", "A title", "A title 2", "A title!", "?"):
        report.section(title)
    anchors = [facts["id"] for _, facts in Page(report.html()).find("h2")]
    assert anchors == ["a-title", "a-title-2", "a-title-2-2", "a-title-3", "section"]


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


def test_mistakes_are_named():
    report = Report("", "")
    with pytest.raises(ValueError, match=r"mark: expected one of first, .*'frist'.*mean 'first'"):
        report.table(["a"], [[Cell("1", mark="frist")]])
    with pytest.raises(ValueError, match="rows: expected 2 cells, got 3 in row 1"):
        report.table(["a", "b"], [["1", "2"], ["1", "2", "3"]])
    with pytest.raises(TypeError, match="rows: expected sequences of cells, got 'ab' as row 0"):
        report.table(["a", "b"], ["ab"])
    with pytest.raises(TypeError, match=r"rows: expected sequences of cells, got Cell\(text='a'"):
        report.table(["a", "b", "c", "d"], [Cell("a")])
    with pytest.raises(TypeError, match="rows: expected strings, numbers or Cells, got bool"):
        report.table(["a"], [[True]])
    with pytest.raises(TypeError, match="rows: expected strings, numbers or Cells, got NoneType"):
        report.table(["a"], [[None]])
    with pytest.raises(TypeError, match="facts: expected strings, numbers or Cells, got list"):
        report.facts({"a": []})
    with pytest.raises(ValueError, match=r"head: expected a sequence of names, got \[\]"):
        report.table([], [])
    with pytest.raises(ValueError, match="head: expected a sequence of names, got 'ab'"):
        report.table("ab", [])
    with pytest.raises(ValueError, match="kind: expected one of info, warning, got 'warn'"):
        report.note("", "warn")
    with pytest.raises(TypeError, match="figure: expected a matplotlib Figure, got str"):
        report.picture("picture.png", "")
    assert Page(report.html()).texts("main")[0].strip() == versions()  # nothing was added by halves


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
        ([123456.7, -math.inf, math.inf], ["123456.7", "-Infinity", "Infinity"]),
        ([Cell("0.48 ± 0.01", 0.4826), Cell("0.5", 0.5)], ["0.4826", "0.5"]),
        (["12%", "\N{MINUS SIGN}3", " 4 "], ["12.0", "-3.0", "4.0"]),
        ([1, "", "-", "\N{EN DASH}", "nan", math.nan], ["1", "", "-", DASH, "nan", DASH]),
        ([Cell("0.5", math.nan), 1], ["nan", "1"]),
        ([Cell("low", 0), Cell("high", 1)], ["0.0", "1.0"]),
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


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (7, "7"),
        (10**20, "100000000000000000000"),
        (0.123456, "0.1235"),
        (2.0, "2"),
        (1e-9, "1e-09"),
        (12345.6, "12346"),
        (1e30, "1e+30"),
        (math.nan, DASH),
        (np.float64(0.5), "0.5"),
    ],
)
def test_numbers_are_shown_short(number, text):
    assert table([["a", number]]).texts("td")[1] == text
    report = Report("", "")
    report.facts({"a": number})
    assert Page(report.html()).texts("dd") == [text]


def test_tables_sort_where_that_makes_sense():
    rows = [["a", 1], ["b", 2]]
    assert "data-sortable" in table(rows).find("table")[0][1]
    assert "data-sortable" not in table(rows, sortable=False).find("table")[0][1]
    assert "data-sortable" not in table(rows[:1]).find("table")[0][1]
    report = Report("", "")
    report.table(["a"], [])
    assert Page(report.html()).texts("th") == ["a"]


def test_long_texts_are_broken_and_short_ones_are_not():
    parsed = table([["a", "short", "long " * 20, "1"]])
    assert [facts.get("class") for _, facts in parsed.find("td")] == [
        None,
        "word",
        "word long",
        None,
    ]


def test_a_table_may_have_a_caption():
    assert table([["a", 1]], caption="Above").texts("figcaption") == ["Above"]
    assert not table([["a", 1]]).find("figcaption")


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


def test_versions_name_what_numbers_depend_on():
    assert versions().startswith(f"permdist {__version__} on Python 3.")
    assert f"numpy {np.__version__}" in versions()


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
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder: cannot be written"):
        Report("", "").save(tmp_path / "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
    locked = tmp_path / "folder"
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        (locked / "probe").write_text("")
    except PermissionError:
        with pytest.raises(PermissionError, match=r"r\.html: cannot be written \(Permission"):
            Report("", "").save(locked / "r.html")
    finally:
        locked.chmod(stat.S_IRWXU)


def test_the_style_has_both_themes():
    # The dark colors stand twice: for those who prefer them and for those who choose them.
    assert STYLE.count("--ground: #16171a") == 2
    assert STYLE.count("{") == STYLE.count("}")
    assert "{DARK}" not in STYLE
