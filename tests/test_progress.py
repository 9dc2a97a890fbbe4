"""Progress bars: in notebooks, and where there is neither a notebook nor a terminal."""

import sys
import types
from xml.etree import ElementTree

import pytest

from permdist import PlackettLuce, _progress, rankings
from permdist.samplers import run_chains

EVIL = '<b>&"'


class Display:
    """Stands for IPython.display.display: keeps what each output has shown."""

    def __init__(self):
        self.shown = []

    def __call__(self, thing, *, display_id):
        assert display_id is True
        self.update(thing)
        return self

    def update(self, thing):
        self.shown.append((repr(thing), thing._repr_html_()))


@pytest.fixture
def notebook(monkeypatch):
    """Make this process look like the kernel of a notebook."""
    display, shell = Display(), types.SimpleNamespace(kernel=object())
    package = types.ModuleType("IPython")
    package.get_ipython = lambda: shell
    module = types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(_progress, "PAUSE", 0.0)
    return display


def test_bars_are_outputs_of_notebooks(notebook, capfd):
    assert _progress.in_notebook()
    with _progress.live_bar(EVIL, 4, counted="fits") as bar:
        bar.update(1)
        bar.update(2, "so far", text="next")
        bar.update(4)
    plain, pages = zip(*notebook.shown, strict=True)
    assert plain[0].startswith(f"{EVIL}: 0/4 fits")
    assert "1/4 fits, 0:00:00 left" in plain[1]
    assert plain[-1] == "next: 4/4 fits, 0:00:00, so far"
    for page in pages:
        tree = ElementTree.fromstring(page)
        assert tree.find("progress").attrib["max"] == "4"
    assert capfd.readouterr() == ("", "")


def test_bars_in_notebooks_end_when_the_work_fails(notebook):
    def work():
        with _progress.progress_bar("work", float("nan"), True) as done:
            done(1.0)
            raise KeyError("lost")

    with pytest.raises(KeyError):
        work()
    assert notebook.shown[-1] == ("", "")
    assert "<progress " in notebook.shown[0][1]
    assert "value" not in notebook.shown[0][1]


def test_chains_and_consensus_use_such_bars(notebook):
    run_chains(
        PlackettLuce([0.5, 0.1, -0.3]), draws=40, tune=5, kernel="adjacent", rng=0, progress=True
    )
    assert notebook.shown[-1][0].startswith("4 chains, adjacent: 100%")
    rankings.consensus([[0, 1], [1, 0]], "borda").bootstrap(3, rng=0, progress=True)
    assert notebook.shown[-1][0].startswith("bootstrap: 100%")


def test_bars_do_not_garble_what_is_no_terminal(capfd):
    assert not _progress.in_notebook()
    with _progress.live_bar("work [1]", 2, counted="fits") as bar:
        bar.update(1)
        bar.update(2, "done")
    with _progress.progress_bar("transient", 2, True) as done:
        done(1)
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert "work [1]" in err
    assert "2/2 fits" in err
    assert "\x1b" not in err
    assert "\r" not in err


def test_a_shell_without_a_kernel_is_a_terminal(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: types.SimpleNamespace())
    assert not _progress.in_notebook()
