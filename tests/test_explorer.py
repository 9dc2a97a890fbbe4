"""The explorer's answers are permdist's own numbers; its server answers its own page only."""

import contextlib
import http.client
import itertools
import json
import math
import re
import signal
import socket
import sys
import threading

import naive
import numpy as np
import pytest
from processes import start, wait_until
from typer.testing import CliRunner

from permdist import DavidsonLuce, GaussianScores, GoodBad, Mallows, PlackettLuce, explorer
from permdist.cli import app
from permdist.explorer.settings import EXAMPLE
from permdist.explorer.sources import MOST_SHOWN
from permdist.rankings import order_by_scores

RNG = np.random.default_rng(0)
SCORES, LABELS = EXAMPLE["scores"], EXAMPLE["labels"]
OWN = {
    "plackett-luce": lambda s, y: PlackettLuce(s / 0.8),
    "gaussian": lambda s, y: GaussianScores(s, 0.8),
    "good-bad": lambda s, y: GoodBad(s, y, scale=1.0 / (0.8 * len(s))),
    "davidson-luce": lambda s, y: DavidsonLuce(s / 0.8, [-0.5]),
} | {
    f"mallows-{one}": lambda s, y, one=one: Mallows(order_by_scores(s), 1.0 / 0.8, one)
    for one in ("kendall", "cayley", "hamming", "footrule", "spearman", "ulam")
}


# ---- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", explorer.FAMILIES)
def test_answers_are_the_numbers_of_the_distribution(model):
    measures = ["ndcg", "ap", "rr", "auc"]
    setting = EXAMPLE | {"model": model, "noise": 0.8, "ties": -0.5, "measures": measures}
    found = explorer.answer(setting)
    own = OWN[model](np.array(SCORES), LABELS)
    for name in ("rank_marginals", "pairwise"):
        np.testing.assert_array_equal(found[name]["values"], np.asarray(getattr(own, name)()))
        assert (found[name]["draws"], found[name]["standard_error"]) == (0, 0.0)
    for row in found["expected"]:
        assert row["draws"] == 0
        assert row["value"] == pytest.approx(own.expect(row["measure"], LABELS), abs=1e-14)
    assert len(found["draws"]) == 10
    assert all(sorted(itertools.chain(*one)) == [0, 1, 2, 3, 4] for one in found["draws"])
    text = json.dumps(found, allow_nan=False)
    assert json.dumps(explorer.answer(json.loads(json.dumps(setting)))) == text  # it is pure
    entropy = found["entropy"]
    assert (entropy is None) == (model == "gaussian")
    if entropy:
        assert entropy["value"] == pytest.approx(own.entropy(), abs=1e-12)


def test_the_reference_agrees():
    found = explorer.answer(EXAMPLE)
    marginals = np.zeros((5, 5))
    for order in itertools.permutations(range(5)):
        marginals[order, range(5)] += float(np.exp(naive.plackett_luce(SCORES, order)))
    np.testing.assert_allclose(found["rank_marginals"]["values"], marginals, atol=1e-12)


@pytest.mark.parametrize(("model", "n"), [("davidson-luce", 13), ("mallows-ulam", 9)])
def test_what_takes_too_long_comes_from_draws_with_errors(model, n):
    scores = np.linspace(1.0, -1.0, n)
    labels = [1, 0] * (n // 2) + [1] * (n % 2)
    setting = {"model": model, "scores": scores.tolist(), "labels": labels, "measures": ["ndcg"]}
    found = explorer.answer(setting)
    table, row = found["rank_marginals"], found["expected"][0]
    assert table["draws"] == row["draws"] == 4000
    assert 0.0 < table["standard_error"] < 0.01
    np.testing.assert_allclose(np.sum(table["values"], axis=1), 1.0)
    np.testing.assert_allclose(np.sum(table["values"], axis=0), 1.0)
    assert 0.0 < row["standard_error"] < 0.01
    assert any("exact up to" in note for note in found["notes"])


def test_the_good_bad_model_of_many_items_is_over_interleavings_and_says_so():
    scores, labels = np.linspace(1.0, -1.0, 30), np.arange(30) % 2
    setting = {"model": "good-bad", "scores": scores.tolist(), "labels": labels.tolist()}
    found = explorer.answer(setting)
    own = GoodBad(scores, labels, space="interleavings", scale=1.0 / 30)
    np.testing.assert_array_equal(found["rank_marginals"]["values"], own.rank_marginals())
    assert "keep their order by score" in found["notes"][0]


def test_measures_that_are_not_defined_have_no_value():
    found = explorer.answer({"scores": [1.0, 0.0], "measures": ["ndcg", "auc"]})
    assert [row["value"] for row in found["expected"]] == [None, None]


WRONG = [
    ([1, 2], "setting: expected an object with scores, got list"),
    ({}, "scores: expected a list, got NoneType"),
    ({"scores": [1.0]}, "scores: expected 2 to 200 items, got 1"),
    ({"scores": [0.0] * 15, "model": "mallows-spearman"}, "at most 14 items for Mallows (Spea"),
    ({"scores": [0.0, math.nan]}, "scores: expected finite numbers, got nan at index 1"),
    ({"scores": [0.0, 1e300]}, "scores: expected numbers up to 1,000,000"),
    ({"scores": [0, 1], "labels": [1]}, "labels: expected 2 labels, one for each score, got 1"),
    ({"scores": [0, 1], "labels": [0.5, 1]}, "labels: expected non-negative integers, got 0.5"),
    ({"scores": [0, 1], "labels": [0, 99]}, "labels: expected at most 30, got 99"),
    ({"scores": [0, 1], "model": "mallow"}, "model: expected one of plackett-luce, gaussian"),
    ({"scores": [0, 1], "model": "good-bad"}, "labels: the good-bad model needs at least two"),
    ({"scores": [0, 1], "noise": 0}, "noise: expected a number from 0.001 to 1000, got 0"),
    ({"scores": [0, 1], "names": ["a", "a"]}, "names: must be unique; 'a' appears more than"),
    ({"scores": [0, 1], "names": ["a", " "]}, "names: expected 1 to 80 characters, got ' '"),
    ({"scores": [0, 1], "measures": ["ndgc"]}, "measure: unknown"),
    ({"scores": [0, 1], "measures": ["bpref"]}, "measures: 'bpref' is for runs"),
    ({"scores": [0, 1], "measures": ["ap"] * 13}, "measures: expected at most 12, got 13"),
    ({"scores": [0, 1], "seed": -1}, "seed: expected at least 0, got -1"),
    ({"scores": [0, 1], "score": 1}, "setting: expected one of"),
]


@pytest.mark.parametrize(("setting", "message"), WRONG, ids=[text[:40] for _, text in WRONG])
def test_a_wrong_setting_is_refused_in_words(setting, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        explorer.answer(setting)
    assert message in str(caught.value)


# ---- sources -----------------------------------------------------------------------------------


def test_a_long_query_is_cut_and_says_so():
    n = MOST_SHOWN + 5
    found = explorer.of_query(np.arange(n), [99] * n, ["same"] * n, title="Long")
    assert len(found.setting["scores"]) == MOST_SHOWN
    assert found.setting["scores"][0] == n - 1  # the best first
    assert f"of {n}" in found.about
    assert set(found.setting["labels"]) == {30}
    explorer.answer(found.setting)  # names were made unique
    with pytest.raises(ValueError, match="One: expected at least 2 items, got 1"):
        explorer.of_query([1.0], [1], ["a"], title="One")


def test_ballots_that_have_no_estimate_get_a_prior_and_ties_their_model():
    found = explorer.of_ballots([[0, 1, 2], [0, 2, 1]], title="Never last")
    assert "0.5 imagined wins and losses" in found.about
    tied = explorer.of_ballots([[[0, 1], 2], [2, 0, 1], [1, 2, 0], [0, [1, 2]]], title="Ties")
    assert tied.setting["model"] == "davidson-luce"
    explorer.answer(tied.setting)


# ---- the server --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with explorer.Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def request(server, path, body=None, *, method=None, **headers):
    """Send a request as it is; return status, headers and text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    sent = {"Host": f"127.0.0.1:{server.server_port}"}
    if body is not None:
        sent["Content-Type"] = "application/json"
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {name: value for name, value in sent.items() if value is not None}
    method = method or ("GET" if body is None else "POST")
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host=True)
        if body is not None and "Content-Length" not in sent:
            sent["Content-Length"] = str(len(body))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(None if body is None else body.encode())
        found = connection.getresponse()
        return found.status, found.headers, found.read().decode()


def post(server, place, body, **headers):
    status, _, text = request(server, f"/{server.token}/{place}", body, **headers)
    return status, json.loads(text)


def test_the_page_is_served_and_answers_are_those_of_the_function(server):
    status, headers, text = request(server, f"/{server.token}/")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert text.startswith("<!doctype html>")
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)  # nothing from anywhere else
    status, found = post(server, "answer", json.dumps(EXAMPLE))
    assert status == 200
    assert found["answer"] == json.loads(json.dumps(explorer.answer(EXAMPLE)))
    assert found["seconds"] > 0.0
    named = EXAMPLE | {"names": ["</script><script>alert(1)</script>", *"abcd"]}
    asked = {"setting": named, "title": "<b>&", "about": "<i>"}
    status, found = post(server, "share", json.dumps(asked))
    assert status == 200
    assert '<h1 id="title">&lt;b&gt;&amp;</h1>' in found["html"]
    assert "<script>alert" not in found["html"]
    assert "<i>" not in found["html"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"scores": [NaN, 1]}', "scores: expected finite numbers, got nan at index 0"),
        ('{"scores": [1e999, 1]}', "scores: expected finite numbers, got inf at index 0"),
        (f'{{"scores": [{"0," * 300_000}0]}}', "expected 2 to 200 items, got 300,001"),
        (f'{{"scores": [{"0," * 1_000_000}0]}}', "at most 200 items can be explored"),
        ("[" * 100_000, "setting: expected JSON, got too many brackets"),
        ("{", "setting: expected JSON, got Expecting property name"),
        ("", "setting: expected JSON, got Expecting value"),
        (f'{{"scores": [{"9" * 5000}, 1]}}', "setting: expected JSON, got Exceeds the limit"),
    ],
    ids=["nan", "inf", "many", "too many", "brackets", "half", "nothing", "digits"],
)
def test_a_wrong_post_is_400_with_a_message(server, body, message):
    status, found = post(server, "answer", body)
    assert status == 400
    assert message in found["error"]


def test_other_hosts_other_pages_and_other_addresses_are_refused(server):
    body, port = json.dumps(EXAMPLE), server.server_port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", f"10.0.0.1:{port}", ""):
        assert request(server, f"/{server.token}/", Host=host)[0] == 403
        assert post(server, "answer", body, Host=host)[0] == 403
    assert request(server, f"/{server.token}/", Host=f"localhost:{port}")[0] == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert post(server, "answer", body, Origin=origin)[0] == 403
    assert post(server, "answer", body, Origin=f"http://127.0.0.1:{port}")[0] == 200
    assert post(server, "answer", body, Sec_Fetch_Site="cross-site")[0] == 403
    assert post(server, "answer", body, Content_Type="text/plain")[0] == 415
    for path in ("/", "/answer", f"/{server.token}", f"/{server.token}x/", f"/{server.token}/no"):
        assert request(server, path)[0] == 404
        assert request(server, path, body)[0] == 404
    assert post(server, "query", '{"query": "1"}')[1]["error"].startswith("query: there is no file")
    assert request(server, f"/{server.token}/answer", method="POST")[0] == 400  # of no length
    assert request(server, f"/{server.token}/", method="PUT")[0] == 501


def test_it_listens_on_the_loopback_interface_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) > 20
    with explorer.Server() as other:
        assert other.token != server.token


# ---- the command -------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    rows = [(1, 0.5), (0, 0.4), (2, 0.3), (0, 0.1)]
    lines = [f"{y} qid:{q} 1:{x * q} 2:{q}" for q in (10, 11) for y, x in rows]
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    battles = "model_a,model_b,winner\n" + "x,y,model_a\ny,x,tie\ny,x,model_a\nz,x,model_a\n" * 3
    (tmp_path / "battles.csv").write_text(battles + "x,z,model_a\n")
    (tmp_path / "votes.soi").write_text(
        "# FILE NAME: votes.soi\n# TITLE: Votes\n# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 3\n"
        "# NUMBER VOTERS: 4\n# NUMBER UNIQUE ORDERS: 3\n# ALTERNATIVE NAME 1: a\n"
        "# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 3: c\n2: 1,2,3\n1: 2,3,1\n1: 3,1,2\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explore(*arguments, code=0):
    result = CliRunner().invoke(app, ["explore", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_files_become_settings(files):
    found = json.loads(explore("data.txt", "-q", "11", "--raw", "--noise", "0.5", "--json"))
    setting = found["setting"]
    assert setting["scores"] == pytest.approx([5.5, 4.4, 3.3, 1.1])
    assert setting["labels"] == [1, 0, 2, 0]
    assert (setting["noise"], setting["model"]) == (0.5, "plackett-luce")
    assert found["answer"] == json.loads(json.dumps(explorer.answer(setting)))
    setting = json.loads(explore("battles.csv", "--json"))["setting"]
    assert sorted(setting["names"]) == ["x", "y", "z"]
    assert setting["model"] == "davidson-luce"
    own = json.loads(CliRunner().invoke(app, ["rate", "battles.csv", "--json"]).output)
    scores = {one["name"]: one["score"] for one in own["leaderboard"]}
    fitted = dict(zip(setting["names"], setting["scores"], strict=True))
    for name in "yz":
        assert fitted["x"] - fitted[name] == pytest.approx(scores["x"] - scores[name], abs=1e-4)
    assert setting["ties"] == pytest.approx(own["log_tie"], abs=1e-5)
    setting = json.loads(explore("votes.soi", "-d", "gaussian", "-m", "ap", "--json"))["setting"]
    assert (setting["model"], setting["measures"]) == ("gaussian", ["ap"])
    assert sorted(setting["names"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.txt",), "none.txt: no such file"),
        (("data.txt", "-q", "12"), "--query: there is no query '12'"),
        (("-q", "12"), "--query: pass a FILE with queries, too"),
        (("data.txt", "-d", "mallow"), "--distribution: expected one of plackett-luce"),
        (("--noise", "0"), "noise: expected a number from 0.001 to 1000, got 0"),
        (("-o", "page.txt"), "--output: expected an .html file, got page.txt"),
    ],
    ids=lambda one: " ".join(one)[:30],
)
def test_mistakes_are_one_line(files, arguments, message):
    text = explore(*arguments, "--no-browser", code=2)
    assert text.startswith("permdist: ")
    assert message in text
    assert len(text.splitlines()) == 1


def test_a_port_in_use_is_one_line(files):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = explore("--port", port, "--no-browser", code=2)
    assert text.startswith(f"permdist: --port: cannot serve on port {port}: it is in use")
    assert len(text.splitlines()) == 1


def test_other_queries_are_opened_by_the_server(files, monkeypatch):
    seen = []

    def serve(server, poll_interval):
        seen.append(server.open_query({"query": "11"}))
        with pytest.raises(ValueError, match="there is no query '12'"):
            server.open_query({"query": "12"})
        seen.append(re.search(r'"queries": (\[.*?\])', server.page())[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(explorer.Server, "serve_forever", serve)
    opened = threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda url: opened.set())
    text = explore("data.txt")
    assert re.match(r"Exploring at http://127\.0\.0\.1:\d+/\S+/\nCtrl-C ends it\.\nEnded\.", text)
    assert opened.wait(5.0)
    assert seen[0]["title"] == "Query 11 of data.txt"
    assert seen[1] == '["10", "11"]'
    opened.clear()
    explore("data.txt", "--no-browser")
    assert not opened.is_set()


def test_ctrl_c_ends_it_cleanly(tmp_path):
    command = [sys.executable, "-u", "-m", "permdist", "explore", "--no-browser"]
    child = start(command, cwd=tmp_path)
    try:
        line = child.stdout.readline()
        assert line.startswith("Exploring at http://127.0.0.1:")
        port = int(line.split(":")[2].split("/")[0])
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert wait_until(lambda: child.poll() is not None, 10) is not None
        assert (child.returncode, child.stdout.read(), child.stderr.read()) == (0, "Ended.\n", "")
    finally:
        child.kill()
        child.communicate()
