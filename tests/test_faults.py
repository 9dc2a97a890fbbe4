"""A bounded run of the fault harness: every case once.

`python tests/faults --minutes 10` goes on from there; see its README.
"""

import os

import pytest

pytest.importorskip("resource", reason="faults are those of Unix")

from faults.run import CASES, main, run_case


@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are those of Unix")
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost(name):
    run_case(name, seed=0)


def test_a_loss_is_told(monkeypatch, capsys):
    def loses(folder, rng):
        raise AssertionError("half a file")

    monkeypatch.setattr("faults.run.CASES", {"loses": loses})
    assert main(["--minutes", "1e-9", "--seed", "7"]) == 0  # no time, no fault
    assert main(["--minutes", "1e-3", "--seed", "7"]) == 1
    told = capsys.readouterr().out
    assert "half a file" in told
    assert "LOST with --seed 7" in told
