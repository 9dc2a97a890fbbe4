import json

import numpy as np
import pytest
from test_cli import permdist

from permdist import identities
from permdist.identities.catalogue import CATALOGUE, Identity, Result


def test_the_whole_catalogue_holds():
    results = identities.check_all(max_examples=6)
    assert len(results) == len(CATALOGUE) >= 20
    for result in results:
        assert result.passed, f"{result.identity.name}: {result.worst}"
        assert result.tried >= 5


def test_the_same_seed_tries_the_same_instances():
    one, again = (identities.check_all(["sum-sum"], max_examples=5, rng=3) for _ in range(2))
    assert one[0].worst == again[0].worst
    assert identities.check_all(["sum-sum"], max_examples=5, rng=np.random.default_rng(3)).passed


def test_every_entry_says_what_it_is_and_where_it_comes_from():
    for name, identity in CATALOGUE.items():
        assert identity.name == name
        assert identity.statement
        assert identity.source
        assert identity.residual.__doc__


def test_a_wrong_claim_fails():
    real = CATALOGUE["sum-product"]
    wrong = Identity("wrong", "1 = 2", "nowhere", lambda h: 1.0, real.instances)
    CATALOGUE["wrong"] = wrong
    try:
        results = identities.check_all(["wrong"], max_examples=3)
    finally:
        del CATALOGUE["wrong"]
    assert not results.passed
    assert "FAIL" in str(results)
    assert not Result(real, 0, 0.0).passed
    assert not Result(real, 1, np.nan).passed
    assert Result(real, 0, np.nan, offered=False).passed


def test_unknown_names():
    with pytest.raises(ValueError, match="no identity 'sum-prodct'; did you mean 'sum-product'"):
        identities.check_all(["sum-prodct"])


def test_command_line():
    text = permdist("identities", "sum-product", "lonesum-count", "--examples", "5")
    assert text.splitlines()[0].split()[:2] == ["identity", "tried"]
    assert text.count("pass") == 2
    facts = json.loads(permdist("identities", "sum-sum", "--examples", "4", "--json"))
    assert facts[0]["name"] == "sum-sum"
    assert facts[0]["passed"]
    assert "no identity 'x'" in permdist("identities", "x", code=2)
