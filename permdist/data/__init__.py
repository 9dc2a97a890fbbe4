"""Query data: the `Queries` collection, LETOR and PrefLib files, and a simulated collection."""

from permdist.data.letor import Fold, load_letor, load_letor_folds, load_scores, save_letor
from permdist.data.preflib import Preferences, load_preflib
from permdist.data.queries import Description, Queries, Query
from permdist.data.simulate import make_letor

__all__ = [
    "Description",
    "Fold",
    "Preferences",
    "Queries",
    "Query",
    "load_letor",
    "load_letor_folds",
    "load_preflib",
    "load_scores",
    "make_letor",
    "save_letor",
]
