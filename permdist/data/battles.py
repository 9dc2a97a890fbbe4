"""Battles: two competitors and who won, from files of evaluations, arenas and tournaments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import choice, frozen
from permdist._registry import split_list
from permdist._text import plural
from permdist.data import battle_values as values
from permdist.data.battle_columns import IDS, SECOND, TIE, find_column, find_roles
from permdist.data.battle_files import EXCESS, Frame, Places, open_table
from permdist.data.view import BattlesView

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pandas import DataFrame

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.ballots import Ballots
    from permdist.data.battle_columns import Earlier, Roles
    from permdist.data.battle_description import BattleDescription


@dataclass(frozen=True, eq=False)
class Battles(BattlesView):
    """Battles of two competitors each, as `load_battles` reads them.

    Attributes
    ----------
    names : tuple of str
        The competitors, sorted; items are numbered from 0.
    first, second : arrays of int, shape (battles,)
        The two competitors of each battle.
    outcome : array of int, shape (battles,)
        0 if the first won, 1 if the second won, 2 for a tie, 3 for a tie where both were bad.
    weights : array of float, shape (battles,), or None
        How often each battle counts; as of `permdist.Ballots`.
    clusters : array of str, shape (battles,), or None
    times : array of float, shape (battles,), or None
        In days if the column has dates or Unix times, else in the column's own unit.
    features : (array, array) of float, shape (battles, covariates), or None
        The covariates of the first and of the second competitor.
    feature_names : tuple of str
    group : array of int, shape (battles,), or None
        The slice that each battle belongs to.
    groups : tuple of str
        The names of the slices.
    columns : dict
        The column that was used for each role.
    source : str
        The file's name.
    dropped : dict of str to int
        How many rows ``missing="drop"`` and ``invalid="drop"`` left out, under ``"missing"`` and
        ``"invalid"``.
    time_unit : str
        ``"days"`` if the column of times has dates or Unix times, else empty.
    unit_weights : array of float, shape (battles,), or None
        The weights of single battles that were counted together; as of `permdist.Ballots`.
    """

    names: tuple[str, ...]
    first: IntArray
    second: IntArray
    outcome: IntArray
    weights: FloatArray | None = None
    clusters: Any = None
    times: FloatArray | None = None
    features: tuple[FloatArray, FloatArray] | None = None
    feature_names: tuple[str, ...] = ()
    group: IntArray | None = None
    groups: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)
    source: str = "battles"
    dropped: dict[str, int] = field(default_factory=dict)
    time_unit: str = ""
    unit_weights: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.outcome)

    def __repr__(self) -> str:
        return f"Battles({len(self):,} of {plural(self.n_items, 'competitor')})"

    @property
    def n_items(self) -> int:
        """The number of competitors."""
        return len(self.names)

    @property
    def tied(self) -> BoolArray:
        """Which battles are ties of either kind."""
        return self.outcome >= TIE

    @cached_property
    def ballots(self) -> Ballots:
        """The battles as ballots, which `fit` takes."""
        from permdist.ballots import Ballots

        turned = self.outcome == SECOND
        features = None
        if self.features is not None:
            one, two = self.features
            swap = turned[:, None]
            features = (np.where(swap, two, one), np.where(swap, one, two))
        ballots = Ballots.from_pairs(
            np.where(turned, self.second, self.first),
            np.where(turned, self.first, self.second),
            ties=self.tied,
            weights=self.weights,
            clusters=self.clusters,
            times=self.times,
            names=self.names,
            features=features,
            feature_names=self.feature_names,
        )
        return replace(ballots, time_unit=self.time_unit, unit_weights=self.unit_weights)

    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Return how often each competitor beat and tied with each other one.

        Returns
        -------
        wins : array of float, shape (n, n)
            ``wins[i, j]``: how often i beat j.
        ties : array of float, shape (n, n)
            Symmetric.

        Examples
        --------
        >>> battles = load_battles({"a": ["x", "x"], "b": ["y", "y"], "winner": ["a", "tie"]})
        >>> wins, ties = battles.counts()
        >>> wins.tolist(), ties.tolist()
        ([[0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]])
        """
        n = self.n_items
        weights = np.ones(len(self)) if self.weights is None else self.weights
        one = np.where(self.outcome == SECOND, self.second, self.first)
        code = one * n + self.first + self.second - one
        decided = ~self.tied
        wins = np.bincount(code[decided], weights[decided], n * n).reshape(n, n)
        ties = np.bincount(code[~decided], weights[~decided], n * n).reshape(n, n)
        return wins.astype(np.float64), (ties + ties.T).astype(np.float64)

    def take(self, rows: Any) -> Battles:
        """Return some of the battles, with the competitors that are in them.

        Parameters
        ----------
        rows : array of bool, shape (battles,), or array of int
        """
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype.kind == "b" else np.asarray(rows)
        if rows.size == 0:
            raise ValueError("rows: expected at least one battle, got none")
        first, second = self.first[rows], self.second[rows]
        there, number = np.unique(np.concatenate([first, second]), return_inverse=True)

        def part(entries: Any) -> Any:
            return None if entries is None else frozen(entries[rows])

        return Battles(
            tuple(self.names[item] for item in there),
            frozen(number[: len(rows)].astype(np.int64)),
            frozen(number[len(rows) :].astype(np.int64)),
            frozen(self.outcome[rows]),
            part(self.weights),
            part(self.clusters),
            part(self.times),
            None if self.features is None else (part(self.features[0]), part(self.features[1])),
            self.feature_names,
            part(self.group),
            self.groups,
            self.columns,
            self.source,
            time_unit=self.time_unit,
            unit_weights=part(self.unit_weights),
        )

    def merged(self) -> Battles:
        """Return different battles only, with their weights added up.

        Battles with clusters, times or covariates stay as they are; ties are of one kind, and the
        competitor with the lower number is the first. Battles whose weights are different numbers,
        not whole, are different.
        """
        if any(part is not None for part in (self.clusters, self.times, self.features)):
            return self
        n = self.n_items
        counts, unit = self.ballots.units()
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        won = np.minimum(self.outcome, TIE)
        won = np.where((self.first > self.second) & (won < TIE), 1 - won, won)
        units, level = np.unique(unit, return_inverse=True)
        codes = ((low * n + high) * 3 + won) * len(units) + level
        codes, which = np.unique(codes, return_inverse=True)
        cells, level = np.divmod(codes, len(units))
        pair = cells // 3
        return Battles(
            self.names,
            frozen(pair // n),
            frozen(pair % n),
            frozen(cells % 3),
            frozen(np.bincount(which, counts) * units[level]),
            unit_weights=None if (units == 1.0).all() else frozen(units[level]),
            columns=self.columns,
            source=self.source,
            dropped=self.dropped,
        )

    def without(self, names: Sequence[str]) -> Battles:
        """Return the battles in which none of some competitors takes part.

        Parameters
        ----------
        names : sequence of str
        """
        gone = {self.names.index(choice("names", name, self.names)) for name in names}
        out = np.array([item in gone for item in range(self.n_items)])
        return replace(self.take(~(out[self.first] | out[self.second])), dropped=self.dropped)

    def slices(self) -> dict[str, Battles]:
        """Return the battles of each value of the column `by`, the largest slice first.

        Examples
        --------
        >>> table = {"a": ["x", "y"], "b": ["y", "x"], "winner": ["a", "a"]}
        >>> table["task"] = ["code", "art"]
        >>> load_battles(table, by="task").slices()
        {'code': Battles(1 of 2 competitors), 'art': Battles(1 of 2 competitors)}
        """
        if self.group is None:
            raise ValueError("slices: pass by=COLUMN to load_battles")
        sizes = np.bincount(self.group, minlength=len(self.groups))
        return {
            self.groups[number]: self.take(self.group == number)
            for number in np.argsort(-sizes, kind="stable").tolist()
            if sizes[number]
        }

    def describe(self) -> BattleDescription:
        """Summarize the battles: competitors, ties, who never won, what is connected."""
        from permdist.data.battle_description import describe_battles

        return describe_battles(self)


def load_battles(
    source: str | os.PathLike[str] | DataFrame | Mapping[str, Sequence[Any]],
    *,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    ties: str | None = None,
    by: str | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    time: str | None = None,
    covariates: str | Sequence[str] = (),
    id: str | None = None,
    missing: str = "error",
    invalid: str = "error",
    spellings: Mapping[str, str] | str | None = None,
) -> Battles:
    r"""Read battles: a row names two competitors and says which of them won.

    Columns are found by their usual names (``model_a, model_b, winner``; ``player_1, player_2,
    result``; ``left, right, vote``; ``winner, loser, tie``; ...), whatever their case. The winner
    is spelled as the competitor's own name, as a side (``model_a``, ``A``, ``left``, ``first``, 1;
    ``model_b``, ``B``, ``right``, ``second``, 0) or as a tie (``tie``, ``draw``, ``both``, 0.5,
    ``tie (bothbad)``, ...). A name takes precedence over a side if all rows can be read so.

    Parameters
    ----------
    source : path, DataFrame or mapping of columns
        A file ``.csv``, ``.tsv``, ``.json`` or ``.jsonl``, plain, ``.gz`` or ``.bz2``.
    first, second : str, optional
        The columns with the competitors.
    winner : str, optional
        The column that says who won.
    loser : str, optional
        The column with the loser, in a table that has winner and loser instead of two sides.
    ties : str, optional
        In such a table, a column that is true for ties.
    by : str, optional
        A column to slice by; see `Battles.slices`.
    weight : str, optional
        A column that says how often each row counts.
    cluster : str, optional
        A column whose equal values are not independent: a voter, a prompt.
    time : str, optional
        A column with dates or Unix times, which are kept in days, or with other numbers that grow
        with time; `Ballots` and ``fit`` take such values themselves, as ``times``.
    covariates : str or sequence of str
        Columns that may have influenced the outcome besides the competitors; several are separated
        by commas. ``length`` is the column of this name, with the difference first minus second, or
        the pair ``length_a`` and ``length_b``. ``position`` is 1 for the first and 0 for the second
        if there is no column of that name.
    id : str, optional
        A column that identifies battles; by default one called ``battle_id``, ``question_id``,
        ``id`` or the like. Rows that agree in this and in all other columns but have different
        winners are refused; if the winner is the same, too, a warning counts them.
    missing : {"error", "drop"}
        What becomes of rows without a competitor or a winner.
    invalid : {"error", "drop"}
        What becomes of rows that match a competitor against itself, whose winner cannot be read,
        or that have more fields than the header. `Battles.dropped` counts what was left out.
    spellings : mapping of str to str, "names" or "sides", optional
        Other spellings of the winner, as ``"first"``, ``"second"``, ``"tie"`` or ``"both bad"``;
        or what the winners are besides ties, which must be said where competitors are called 0, 1
        or 2 and both readings are possible.

    Returns
    -------
    Battles

    Raises
    ------
    ValueError
        With the file, the lines (of a data frame: the rows, from 0), up to ten of them, and the
        reasons.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "battles.csv"
    >>> _ = path.write_text("model_a,model_b,winner\nx,y,model_a\ny,z,tie (bothbad)\nz,x,x\n")
    >>> battles = load_battles(path)
    >>> battles.names, battles.outcome.tolist()
    (('x', 'y', 'z'), [0, 3, 1])
    >>> load_battles({"model_a": ["x"], "model_b": ["x"], "winner": ["tie"]})
    Traceback (most recent call last):
    ...
    ValueError: battles, row 0: 'x' is matched against itself; invalid='drop' leaves such rows out
    """
    sides = (first, second, winner, loser, ties)
    options = BattleOptions(
        *sides, weight, missing, invalid, spellings, by, cluster, time, covariates, id
    )
    return battles_in(open_table(source), options)


class BattleOptions(NamedTuple):
    """How to read a table of battles; see `load_battles`."""

    first: str | None
    second: str | None
    winner: str | None
    loser: str | None
    ties: str | None
    weight: str | None
    missing: str
    invalid: str
    spellings: Mapping[str, str] | str | None
    by: str | None = None
    cluster: str | None = None
    time: str | None = None
    covariates: str | Sequence[str] = ()
    id: str | None = None

    def roles(self, columns: Sequence[str], source: str) -> Roles:
        """Return which column is which."""
        return find_roles(
            columns,
            first=self.first,
            second=self.second,
            winner=self.winner,
            loser=self.loser,
            ties=self.ties,
            source=source,
        )


def battles_in(table: Any, options: BattleOptions, earlier: Earlier | None = None) -> Battles:
    """Return the battles of an open table, or of one block of it; see `load_battles`.

    `earlier` is what the blocks before this one have said about the winner.
    """
    policies = {"missing": options.missing, "invalid": options.invalid}
    for policy, value in policies.items():
        choice(policy, value, ("error", "drop"))
    roles = options.roles(table.columns, table.name)

    def column(role: str) -> str | None:
        name = getattr(options, role)
        return None if name is None else find_column(table.columns, name, role, table.name)

    wanted = {role: column(role) for role in ("by", "weight", "cluster", "time", "id")}
    wanted["id"] = wanted["id"] or next((c for c in table.columns if c.lower() in IDS), None)
    names = options.covariates
    names = split_list(names, "covariates") if isinstance(names, str) else names
    pairs = {name: values.covariate(table.columns, name, table.name) for name in names}
    words = [c for c in (roles.first, roles.second, roles.winner, wanted["by"]) if c]
    others = [*roles.shares, roles.ties, *wanted.values(), *(c for p in pairs.values() for c in p)]
    frame = table.read(list(dict.fromkeys([*words, *filter(None, others)])), words)
    if frame.empty:
        raise ValueError(f"{table.name}: expected at least one battle, there is none")
    kept = np.arange(len(frame))
    if isinstance(table, Frame):
        values.refuse_nested(frame, Places(table))
    faults = values.Faults(table, policies)

    def sieve(kind: str, bad: BoolArray, reason: Any, *more: IntArray) -> tuple[Any, ...]:
        """Leave out what is bad, from the frame, the numbers of its rows, and other arrays."""
        good = faults.sieve(kind, bad, kept, reason)
        if good.all():
            return frame, kept, *more
        return frame[good].reset_index(drop=True), kept[good], *(part[good] for part in more)

    if EXCESS in frame:
        excess = frame.pop(EXCESS).notna().to_numpy()
        fields = f"expected {table.fields} fields, got more"
        frame, kept = sieve("invalid", excess, lambda _: fields)
    frame, kept = sieve("missing", *values.incomplete(frame, roles))
    items, one, two = values.items_of(frame, roles)
    itself, same = one, items
    frame, kept, one, two = sieve(
        "invalid", one == two, lambda r: f"{same[itself[r]]!r} is matched against itself", one, two
    )
    where = Places(table, kept)
    outcome, reason = values.outcomes(
        frame, roles, items, one, two, options.spellings, where, earlier
    )
    frame, kept, one, two, outcome = sieve("invalid", outcome < 0, reason, one, two, outcome)
    faults.settle()
    dropped = faults.counts()
    if "invalid" in dropped:
        items, one, two = values.items_of(frame, roles)
    where = Places(table, kept)
    if wanted["id"] is not None:
        values.check_repeats(table, frame[wanted["id"]], one, two, outcome, roles, kept)
    weights = None if wanted["weight"] is None else values.numbers(frame, wanted["weight"], where)
    if weights is not None:
        values.refuse(
            weights < 0, where, lambda row: f"expected a weight >= 0, got {weights[row]:g}"
        )
    times = None if wanted["time"] is None else values.times(frame, wanted["time"], where)
    slices = None if wanted["by"] is None else values.coded(frame[wanted["by"]])
    given = roles._asdict() | wanted
    return Battles(
        items,
        frozen(one),
        frozen(two),
        frozen(outcome),
        None if weights is None else frozen(weights),
        None if wanted["cluster"] is None else values.clusters(frame[wanted["cluster"]]),
        None if times is None else frozen(times[0]),
        values.features(frame, list(pairs.values()), where) if pairs else None,
        tuple(pairs),
        None if slices is None else frozen(slices[0]),
        () if slices is None else tuple(slices[1]),
        {role: name for role, name in given.items() if isinstance(name, str) and name},
        table.name,
        dropped,
        "" if times is None else times[1],
    )
