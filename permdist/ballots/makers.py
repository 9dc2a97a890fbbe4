"""Ways to make ballots from what people have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from permdist.ballots import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from permdist.ballots.ballots import Ballots


class Makers(ABC):
    """The ``from_`` methods of `Ballots`."""

    @classmethod
    @abstractmethod
    def _from_flat(
        cls,
        flat: dict[str, Any],
        weights: ArrayLike | None,
        clusters: ArrayLike | None,
        times: ArrayLike | None,
    ) -> Self:
        """Return ballots from flat arrays and what is given for every ballot."""

    @classmethod
    def from_orders(
        cls,
        orders: Any,
        *,
        n_items: int | None = None,
        subset: bool | None = None,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Make ballots from rankings of all items, of some of them, or of the first places.

        Parameters
        ----------
        orders : array, or sequence of rankings
            Rows of an array are orders. A ranking in a sequence is a `BucketOrder`, a `TopK`, or
            a list from the best to the worst whose entries are items or, for a tie, lists of
            items. Items are numbers from 0 or names.
        n_items : int, optional
            The number of items; by default as many as occur.
        subset : bool, optional
            What a ranking that leaves items out means: True if it ranks the listed items among
            themselves, False if all others are below. It must be given where there are such.
        names : sequence of str, optional
            The names of the items 0, 1, ...; by default the names that occur, in alphabetical
            order.
        weights : array of float, shape (ballots,), optional
            How often each ballot was cast, or its importance where this is no whole number; see
            `Ballots`.
        clusters : array of shape (ballots,), optional
            Labels of any kind; ballots with one label need not be independent.
        times : array, shape (ballots,), optional
            When each ballot was cast: dates or Unix times, which are kept in days, or other numbers
            in any unit. A column of `permdist.data.load_battles` is named by ``time``.

        Examples
        --------
        >>> from permdist import Ballots
        >>> Ballots.from_orders([[0, 1, 2], [[0, 1], 2], [2, 0]], subset=True).largest_tie
        2
        """
        flat = reading.read_orders(orders, n_items, subset, names)
        return cls._from_flat(flat, weights, clusters, times)

    @classmethod
    def from_ranks(
        cls,
        ranks: ArrayLike,
        *,
        unranked: float | None = None,
        subset: bool | None = None,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Make ballots from the rank of each item; equal ranks are ties.

        Parameters
        ----------
        ranks : array of float or data frame, shape (ballots, n)
            The lowest number is the best; NaN where an item was not ranked. The columns of a data
            frame are names.
        unranked : float, optional
            Another number that stands for "not ranked", such as 0; NaN if there is none and 0 is
            the best rank. It must be given where ranks are 0.
        subset : bool, optional
            What a ballot without some of the ranks means: True, the default, if these items were
            not there, False if they are below the others.
        names, weights, clusters, times
            As in `from_orders`.

        Examples
        --------
        >>> from permdist import Ballots
        >>> ballots = Ballots.from_ranks([[1, 2, 2], [float("nan"), 1, 2]])
        >>> ballots.items, ballots.sizes
        (array([0, 1, 2, 1, 2]), array([1, 2, 1, 1]))
        >>> Ballots.from_ranks([[1, 0, 2], [0, 1, 2]], unranked=0).items
        array([0, 2, 1, 2])
        """
        flat = reading.read_ranks(ranks, unranked, subset, names)
        return cls._from_flat(flat, weights, clusters, times)

    @classmethod
    def from_long(
        cls,
        ballot: ArrayLike,
        item: ArrayLike,
        rank: ArrayLike,
        *,
        unranked: float | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Make ballots from a table with one row for each item of each ballot.

        Parameters
        ----------
        ballot : array, shape (rows,)
            Labels of any kind; rows with one label belong together.
        item : array of int or str, shape (rows,)
        rank : array of float, shape (rows,)
            The lowest number of a ballot is its best; equal numbers are ties.
        unranked : float, optional
            As in `from_ranks`; items with this rank were not there.
        names : sequence of str, optional
            As in `from_orders`.

        Examples
        --------
        >>> from permdist import Ballots
        >>> Ballots.from_long(["v", "v", "w", "w"], ["a", "b", "b", "a"], [1, 2, 1, 1]).sizes
        array([1, 1, 2])
        """
        flat = reading.read_long(ballot, item, rank, unranked, names)
        return cls._from_flat(flat, None, None, None)

    @classmethod
    def from_choices(
        cls,
        chosen: Sequence[Any],
        menus: Sequence[Any] | None = None,
        *,
        n_items: int | None = None,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Make ballots from choices of one item out of a menu.

        Parameters
        ----------
        chosen : sequence of int or str, length (ballots,)
        menus : sequence of sequences, length (ballots,), optional
            The alternatives of each choice, the chosen one among them; all items by default.
        n_items, names, weights, clusters, times
            As in `from_orders`.

        Examples
        --------
        >>> from permdist import Ballots
        >>> Ballots.from_choices(["tea", "cola"], [["tea", "milk"], ["tea", "milk", "cola"]]).names
        ('cola', 'milk', 'tea')
        """
        flat = reading.read_choices({"chosen": chosen}, menus, n_items, names)
        return cls._from_flat(flat, weights, clusters, times)

    @classmethod
    def from_best_worst(
        cls,
        best: Sequence[Any],
        worst: Sequence[Any],
        menus: Sequence[Any] | None = None,
        *,
        n_items: int | None = None,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Make ballots from choices of the best and then the worst item of a menu.

        The worst is chosen out of all but the best with chances proportional to 1 / worth, the
        sequential best-worst model of surveys. (It is not the chance to be last in a
        Plackett-Luce ranking of the menu, beyond two items.)

        Parameters
        ----------
        best, worst : sequences of int or str, length (ballots,)
        menus : sequence of sequences, length (ballots,), optional
        n_items, names, weights, clusters, times
            As in `from_choices`.
        """
        flat = reading.read_choices({"best": best, "worst": worst}, menus, n_items, names)
        return cls._from_flat(flat, weights, clusters, times)

    @classmethod
    def from_pairs(
        cls,
        winners: ArrayLike,
        losers: ArrayLike,
        *,
        ties: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        n_items: int | None = None,
        names: Sequence[str] | None = None,
        clusters: ArrayLike | None = None,
        times: ArrayLike | None = None,
        features: tuple[ArrayLike, ArrayLike] | None = None,
        feature_names: Sequence[str] = (),
    ) -> Self:
        """Make ballots from contests of two.

        Parameters
        ----------
        winners, losers : arrays of int or str, shape (contests,)
        ties : array of bool, shape (contests,), optional
            Contests without a winner.
        weights : array of float, shape (contests,), optional
            How often each contest had this result, or its importance where this is no whole
            number; see `Ballots`.
        n_items, names, clusters, times
            As in `from_orders`.
        features : pair of arrays of float, shape (contests, q), optional
            Covariates of the winner and of the loser on this occasion.
        feature_names : sequence of str, optional

        Examples
        --------
        >>> from permdist import Ballots
        >>> ballots = Ballots.from_pairs([0, 0, 1], [1, 2, 2], ties=[False, False, True])
        >>> ballots.n_items, ballots.largest_tie
        (3, 2)
        """
        flat = reading.read_pairs(winners, losers, ties, n_items, names, features, feature_names)
        return cls._from_flat(flat, weights, clusters, times)

    @classmethod
    def from_blocks(cls, blocks: Iterable[Any]) -> Ballots:
        """Make ballots from blocks of them, read one after the other; equal ones are counted.

        Memory is needed for one block and for the different ballots, however many were cast: a
        hundred million battles of 500 competitors are at most 374,250 different ones, two wins
        and a tie for each pair. `fit` accepts the blocks, too.

        Parameters
        ----------
        blocks : iterable of Ballots or Battles
            Names decide which items are the same; items without names are numbered alike in all
            blocks, and there are as many as in the largest of them. Equal ballots of different
            weights that are not whole numbers are different ballots. Clusters, times and
            covariates are refused: ballots that have them are not equal. Errors of the kind
            ``"sandwich"`` treat all ballots as independent, then.

        Returns
        -------
        Ballots
            Different ones, in the order of their first occurrence. Where the sequence was cut
            into blocks makes no difference, not even of rounding.

        Examples
        --------
        >>> from permdist import Ballots
        >>> days = (Ballots.from_pairs(["tea"] * 9, ["milk"] * 9) for day in range(100))
        >>> Ballots.from_blocks(days).weights
        array([900.])
        """
        from permdist.ballots.blocks import merge_blocks

        return merge_blocks(blocks)
