"""What is noted while a learner works: its history, and when validation says to stop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import seconds_without_compiling
from permdist.data import Queries
from permdist.measures import Measure, evaluate
from permdist.models.progress import RECENT, iterations_left, told
from permdist.models.solvers.total import linear_scores

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.models.cluster_scores import HeldOutStores


SLOW = 0.1  # seconds of an iteration from which on it is told how long it takes


class Watch:
    """The notes of one fit.

    Parameters
    ----------
    name : str
        The learner's, for what is printed.
    held_out : Queries or HeldOutStores, optional
        Validation data, already normalized; of learners that are not linear always `Queries`.
    measure : Measure
        What to judge it by.
    patience : int, optional
        Iterations without a better measure after which to stop.
    verbose : bool

    Attributes
    ----------
    history : dict of lists
        One entry per iteration.
    best : object
        The state with the best measure on the validation data, where there is any.
    best_at : int
        The iteration it came from, 0 for where the learner started.
    stopped : bool
        Whether validation has ended the fit.
    """

    def __init__(
        self,
        name: str,
        *,
        held_out: Queries | HeldOutStores | None = None,
        measure: Measure,
        patience: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.name, self.measure = name, measure
        self.held_out: Any = held_out
        self.patience, self.verbose = patience, verbose
        self.history: dict[str, list[float]] = {"objective": [], "seconds": []}
        self.best: Any = None
        self._highest, self.best_at = -float("inf"), 0
        self._begun, self._start, self._start_kept = 0, np.nan, False
        self.stopped = False
        self._tol, self._most = 0.0, 0
        self._begin = seconds_without_compiling()

    def again(self) -> Watch:
        """Return a watch for another run of the same fit."""
        return Watch(
            self.name,
            held_out=self.held_out,
            measure=self.measure,
            patience=self.patience,
            verbose=self.verbose,
        )

    def expect(self, tol: float, max_iter: int) -> None:
        """Take note of when the optimizer stops, to tell how long it may take.

        Parameters
        ----------
        tol : float
            The gap to the minimum.
        max_iter : int
            Iterations from now on.
        """
        self._tol, self._most = tol, len(self) + max_iter

    def _time(self) -> str:
        """Return how long an iteration takes and, where it can be told, about how long all will."""
        seconds = self.history["seconds"]
        recent = seconds[-RECENT:]
        pace = (recent[-1] - recent[0]) / max(1, len(recent) - 1)
        if len(recent) < 2 or pace < SLOW:
            return ""
        gaps = self.history.get("gap", [])
        if "lower" in self.history:
            pairs = zip(self.history["objective"], self.history["lower"], strict=True)
            gaps = [(high - low) / max(abs(high), 1e-300) for high, low in pairs]
        left = iterations_left(gaps, self._tol)
        about = ""
        if left is not None:
            about = f", about {told(pace * min(left, self._most - len(self)))} left"
        return f", {pace:.2g} s per iteration{about}"

    def adopt(self, other: Watch) -> None:
        """Take over the notes of another run."""
        self.__dict__.update(other.__dict__)

    def __len__(self) -> int:
        return len(self.history["objective"])

    @property
    def stops_early(self) -> bool:
        """Whether validation decides which state to keep."""
        return self.patience is not None and self.held_out is not None

    def judge(self, scores: FloatArray) -> float:
        """Measure scores of the validation data."""
        if self.held_out is None:
            raise ValueError("eval_set: there is none to judge by")
        result = evaluate(scores, self.held_out.y, self.held_out.qid, self.measure)
        return float(result.mean(self.measure))

    def judge_linear(self, coef: FloatArray) -> float:
        """Measure the scores that a linear learner gives to the validation data."""
        if self.held_out is None or isinstance(self.held_out, Queries):
            X = np.zeros((0, len(coef))) if self.held_out is None else self.held_out.X
            return self.judge(linear_scores(X, coef))
        return float(self.held_out.mean(coef, self.measure))

    def first(self, coef: FloatArray) -> None:
        """Take the coefficients that a linear learner starts from as the best so far."""
        if self.held_out is not None:
            self.best, self.best_at, self._begun = np.array(coef), len(self), len(self)
            self._highest = self.judge_linear(coef)
            if not len(self):
                self._start = self._highest

    def keep_best(self) -> Any:
        """Return the state with the best measure, for the learner to keep."""
        # A later round of a fit starts from the model that the one before has kept.
        from_start = self._begun == 0 or self._start_kept
        self._start_kept = from_start and self.best is not None and self.best_at == self._begun
        return self.best

    def record(self) -> dict[str, list[float]]:
        """Return the history of the fit; if the start was kept, it comes first."""
        if not self._start_kept or np.isnan(self._start):
            return self.history
        known = {"seconds": 0.0, "measure": self._start}
        keys = dict.fromkeys([*self.history, "measure"])
        return {key: [known.get(key, np.nan), *self.history.get(key, [])] for key in keys}

    def linear(self, coef: FloatArray, **values: float) -> bool:
        """Note one iteration of a linear learner; see `note`."""
        measured = None if self.held_out is None else self.judge_linear(coef)
        return self._note(np.array(coef), measured, **values)

    def note(self, state: Any, scores: FloatArray | None, **values: float) -> bool:
        """Note one iteration, and the scores it gives to the validation data.

        Returns
        -------
        bool
            Whether validation says that it is time to stop.
        """
        measured = None if self.held_out is None or scores is None else self.judge(scores)
        return self._note(state, measured, **values)

    def _note(self, state: Any, measured: float | None, **values: float) -> bool:
        for key, value in values.items():
            self.history.setdefault(key, []).append(float(value))
        self.history["seconds"].append(seconds_without_compiling() - self._begin)
        text = ", ".join(f"{key} {value:.6g}" for key, value in values.items())
        stop = False
        if measured is not None:
            self.history.setdefault("measure", []).append(measured)
            text += f", {measured:.4f} held out"
            if measured > self._highest:
                self.best, self._highest, self.best_at = state, measured, len(self)
            stop = self.patience is not None and len(self) - self.best_at >= self.patience
            self.stopped = self.stopped or stop
        if self.verbose:
            print(f"{self.name} {len(self):>4}: {text}{self._time()}", file=sys.stderr)
        return stop
