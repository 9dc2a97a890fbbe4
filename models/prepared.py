"""What learners learn from: queries with missing values filled and features scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from permdist.models.attributes import LARGEST_WIDTH
from permdist.models.batch import Batch, teaching
from permdist.models.blocks import Table
from permdist.models.inputs import need_names, need_range
from permdist.models.missing import METHODS, Filling, need_values
from permdist.models.options import Declared, option
from permdist.models.rules import Flag, OneOf, Views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.data import Queries


class Prepared(Declared):
    """An estimator that fills missing values and scales features before it learns from queries."""

    by_column: ClassVar[bool] = False  # whether columns of the features should be contiguous

    normalize: bool | str | Sequence[str] = option(
        Views(),
        "How to scale every feature within its query: not at all, to the range from 0 to 1, "
        "or by any of the methods of `permdist.data.Queries.normalize`. Several of them give "
        "the learner as many versions of every feature, side by side.",
        default=False,
    )
    missing: str = option(
        OneOf(METHODS),
        "What to do with features that are missing, NaN: refuse them, or replace them by 0 or by "
        "the mean of those that the query has of the feature (0 if it has none). They are "
        "replaced before `normalize`.",
        default="error",
    )
    missing_indicator: bool = option(
        Flag(),
        "Whether every feature with missing values in the training data gets one more column, 1 "
        "where it is missing and 0 elsewhere. These columns come last, see `filling_`.",
        default=True,
    )
    # ---- what a learner may give ---------------------------------------------------------------

    def _seen(self, labels: IntArray) -> IntArray:
        """Return labels as the learner sees them."""
        return labels

    def _batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        """Make the batch of queries that the learner learns from."""
        return Batch.of(labels, ptr)

    def _draws_by_document(self) -> bool:
        """Whether what is drawn depends on the order of the documents of a query."""
        return False

    # ---- how queries are prepared --------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    @property
    def filling(self) -> Filling:
        """What the fitted learner does with missing values."""
        return getattr(self, "filling_", Filling())

    @property
    def n_columns(self) -> int:
        """The number of columns that the fitted learner works on: features, then indicators."""
        return self.n_features_in_ * len(self.views_) + len(self.filling.indicators)

    @property
    def views(self) -> tuple[str, ...]:
        """The versions of the features that are put side by side."""
        return self._views()

    @property
    def draws_by_document(self) -> bool:
        """Whether what is drawn depends on the order of the documents of a query."""
        return self._draws_by_document()

    def lessons(self, queries: Queries) -> tuple[IntArray, BoolArray]:
        """Return the labels as the learner sees them, and which queries teach it anything."""
        labels = self._seen(queries.y)
        return labels, teaching(labels, queries.ptr)

    def new_filling(self, queries: Queries) -> Filling:
        """Return what the learner would do with the missing values of these queries."""
        return Filling.of(queries, self.missing, bool(self.missing_indicator))

    def keep_filling(self, filling: Filling, *, warm: bool) -> None:
        """Keep which features have missing values; with a warm start they must be the same."""
        before = self.filling
        if warm and filling.indicators != before.indicators:
            raise ValueError(
                f"missing: expected missing values of the features {list(before.indicators)} as "
                f"before (warm_start), got {list(filling.indicators)}; use missing_indicator=False"
            )
        if self.missing == "error":
            self.__dict__.pop("filling_", None)
        else:
            self.filling_ = filling

    def _views(self) -> tuple[str, ...]:
        """Return the versions of the features that are put side by side."""
        return Views().read("normalize", self.normalize)

    def training_data(self, queries: Queries) -> tuple[FloatArray, Batch]:
        """Return the features and the batch of queries that the learner learns from.

        Queries whose documents all have the same label teach nothing and are left out.

        Parameters
        ----------
        queries : Queries
        """
        table = self.training_table(queries)
        need_range(table.largest)
        return self._whole(table)

    def training_table(self, queries: Queries, **options: Any) -> Table:
        """Return the queries that the learner learns from, by blocks; see `training_data`.

        Parameters
        ----------
        queries : Queries
        **options
            Of `permdist.models.blocks.Table`.
        """
        filling = getattr(self, "filling_", None) or self.new_filling(queries)
        need_values(filling.method, queries)
        labels, useful = self.lessons(queries)
        if not useful.any():
            raise ValueError(
                "y: no query has documents of different labels, there is nothing to learn from"
            )
        return Table(
            queries,
            filling=filling,
            views=self._views(),
            labels=labels,
            keep=useful,
            **{
                "canonical": self._draws_by_document(),
                "n_jobs": getattr(self, "n_jobs", 1),
                **options,
            },
        )

    def _whole(self, table: Table) -> tuple[FloatArray, Batch]:
        """Return all features in one array, and the batch of the queries."""
        features = table.whole(by_column=self.by_column)
        return features, self._batch(table.labels, table.ptr)

    def check_width(self, width: int, names: tuple[str, ...] | None, *, warm: bool) -> None:
        """Refuse too many features, and to go on from coefficients for other ones."""
        if width > LARGEST_WIDTH:
            raise ValueError(f"X: expected at most {LARGEST_WIDTH:,} features, got {width:,}")
        if not warm or width == 0:
            return
        if tuple(self.views_) != self._views():
            raise ValueError(
                f"normalize: expected {tuple(self.views_)} as before (warm_start), got "
                f"{self._views()}"
            )
        if width != self.n_features_in_:
            raise ValueError(
                f"X: expected {self.n_features_in_} features as before (warm_start), got {width}"
            )
        if names is not None and hasattr(self, "feature_names_in_"):
            need_names(self, names)
