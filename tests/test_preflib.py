import numpy as np
import pytest

from permdist import GaussianScores, PlackettLuce
from permdist.data import load_preflib
from permdist.rankings import BucketOrder, TopK

HEAD = "# TITLE: Fruit\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: apple\n"
HEAD += "# ALTERNATIVE NAME 2: alternative 2\n# ALTERNATIVE NAME 3: alternative 3\n"


def load(tmp_path, text, name="votes.toc"):
    path = tmp_path / name
    path.write_text(text)
    return load_preflib(path)


def test_strict_complete_orders(tmp_path):
    votes = load(tmp_path, HEAD + "# NUMBER VOTERS: 5\n3: 1,2,3\n2: 3,1,2\n", "votes.soc")
    assert votes.names == ("apple", "alternative 2", "alternative 3")
    assert votes.orders().tolist() == [[0, 1, 2], [2, 0, 1]]
    assert votes.counts.tolist() == [3, 2]
    assert votes.n_voters == 5
    assert votes.top_k() == [TopK([0, 1, 2], 3), TopK([2, 0, 1], 3)]
    assert "ballots                   5  (2 different)" in votes.describe()


def test_incomplete_orders(tmp_path):
    votes = load(tmp_path, HEAD + "4: 2\n1: 3,1\n", "votes.soi")
    assert votes.top_k() == [TopK([1], 3), TopK([2, 0], 3)]
    assert votes.bucket_orders()[0] == BucketOrder([[1], [0, 2]])
    with pytest.raises(ValueError, match="strict incomplete orders, not all are total orders"):
        votes.orders()


def test_ballots_are_fitted_with_their_counts_and_names(tmp_path):
    lines = "3: 1,2,3\n2: 3,1,2\n2: 2,3,1\n"
    votes = load(tmp_path, HEAD + lines, "votes.soc")
    repeated = np.repeat(votes.orders(), votes.counts, axis=0)
    for kind in (PlackettLuce, GaussianScores):
        model = kind.fit(votes)
        assert model.names == votes.names
        assert model.scores == pytest.approx(kind.fit(repeated).scores, abs=1e-6)
    tops = load(tmp_path, HEAD + lines + "4: 2\n", "votes.soi")
    expected = PlackettLuce.fit(tops.top_k(), weights=tops.counts, n_items=3).scores
    assert PlackettLuce.fit(tops).scores == pytest.approx(expected)
    tied = load(tmp_path, HEAD + "1: {1,2},3\n2: 3,1,2\n")
    with pytest.raises(ValueError, match="orders with ties; models of orders have no ties"):
        PlackettLuce.fit(tied)


def test_ties(tmp_path):
    votes = load(tmp_path, HEAD + "1: {1, 3},2\n2: {1,2,3}\n")
    assert votes.bucket_orders() == [BucketOrder([[0, 2], [1]]), BucketOrder([[0, 1, 2]])]
    assert "ballots with ties         3" in votes.describe()
    with pytest.raises(ValueError, match="some ballots have ties"):
        votes.top_k()
    open_end = load(tmp_path, HEAD + "1: {1,3}\n", "votes.toi")
    assert open_end.bucket_orders() == [BucketOrder([[0, 2], [1]])]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("3: 1,2,3\n", "v.soc", "line 1: no '# NUMBER ALTERNATIVES: n' before the first ballot"),
        (HEAD, "v.soc", "expected at least one ballot, the file has none"),
        (HEAD + "1,2,3\n", "v.soc", "line 6: expected 'count: order', got '1,2,3'"),
        (HEAD + "x: 1,2,3\n", "v.soc", "line 6: expected a positive whole number, got 'x'"),
        (HEAD + "1: 1,2,4\n", "v.soc", "line 6: expected alternatives 1 to 3, got 4"),
        (HEAD + "1: 1,2,2\n", "v.soc", "line 6: alternative 2 is listed twice"),
        (HEAD + "1: 1,{2,3\n", "v.toc", "line 6: expected an order such as '3,{1,2},4'"),
        (HEAD + "1: 1,,2\n", "v.soi", "line 6: expected an order such as"),
        (HEAD + "1: {1,2}3\n", "v.toi", "line 6: expected an order such as"),
        (HEAD + "1: {1,2},3\n", "v.soc", "strict complete orders (soc), but a ballot has ties"),
        (HEAD + "1: 1,2\n", "v.soc", "(soc), but a ballot leaves items out"),
        (
            HEAD + "# NUMBER VOTERS: x\n1: 1,2,3\n",
            "v.soc",
            "VOTERS: expected a whole number",
        ),
        (HEAD + "1: " + "9" * 5000 + "\n", "v.soi", "line 6: expected a number up to 2^53"),
        (HEAD + "1: {1" + " " * 200_000 + ",2 3},3\n", "v.toi", "line 6"),  # in linear time
        (HEAD + f"{2**53}: 1,2,3\n1: 3,2,1\n", "v.soc", "expected at most 2^53 voters"),
        (HEAD + "1: 1,2,3\n", "v.txt", "expected data of type soc, soi, toc, toi, got none"),
        ("", "v.soc", "the file is empty"),
    ],
)
def test_bad_files_are_named(tmp_path, text, name, message):
    with pytest.raises(ValueError) as caught:
        load(tmp_path, text, name)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_binary_files(tmp_path):
    path = tmp_path / "v.soc"
    path.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(ValueError, match="this is not a text file"):
        load_preflib(path)
    path.write_bytes(
        (HEAD + "# DATA TYPE: SOC\n1: 1,2,3\n").replace("apple", "\xe9").encode("latin-1")
    )
    assert load_preflib(path).names[0] == "\xe9"


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("# NUMBER VOTERS: 9\n", "has 9 voters, the lines add up to 5"),
        ("# NUMBER UNIQUE ORDERS: 3\n", "has 3 different orders, the lines have 2"),
        ("# ALTERNATIVE NAME 4: fig\n", "has 3 alternatives, the number of names is 4"),
    ],
)
def test_counts_that_disagree_with_the_header(tmp_path, header, told):
    lines = "3: 1,{2,3}\n2: 3,1,2\n"
    with pytest.warns(UserWarning, match=told) as caught:
        votes = load(tmp_path, HEAD + header + lines)
    assert caught[0].filename == __file__
    assert votes.n_voters == 5
    assert votes.n_items == 3
    with pytest.raises(ValueError, match=f"{told}.*strict=False reads it"):
        load_preflib(tmp_path / "votes.toc", strict=True)
    agreeing = "# NUMBER VOTERS: 5\n# NUMBER UNIQUE ORDERS: 2\n"
    (tmp_path / "votes.toc").write_text(HEAD + agreeing + lines)
    assert load_preflib(tmp_path / "votes.toc", strict=True).n_voters == 5


def test_the_same_order_written_twice_is_one(tmp_path):
    head = HEAD + "# NUMBER UNIQUE ORDERS: 2\n"
    with pytest.warns(UserWarning, match="2 different orders, the lines have 1"):
        load(tmp_path, head + "3: {1,2},3\n2: {2,1},3\n")


def test_alternatives_are_sized_before_there_is_room_for_them(tmp_path):
    with pytest.raises(ValueError, match=r"3,000,000,000 alternatives: .*_LIMIT=3.3e\+11"):
        load(tmp_path, "# NUMBER ALTERNATIVES: 3000000000\n1: 1,2,3\n", "v.soi")
