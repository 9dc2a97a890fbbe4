"""Collections of queries, folds and stores of them, battles; LETOR, TREC, PrefLib, CSV files."""

from permdist.data.battle_blocks import BattleBlocks, read_battles
from permdist.data.battle_description import BattleDescription
from permdist.data.battles import Battles, load_battles
from permdist.data.description import Description
from permdist.data.folds import Fold, load_letor_folds, make_folds
from permdist.data.letor import load_letor, save_letor
from permdist.data.order_files import load_orders
from permdist.data.preflib import Preferences, load_preflib
from permdist.data.queries import Queries, Query
from permdist.data.runs import (
    file_kind,
    is_run,
    load_qrels,
    load_run,
    load_scores,
    save_run,
    save_scores,
)
from permdist.data.simulate import make_letor
from permdist.data.simulate_battles import make_battles
from permdist.data.store import is_store, open_store
from permdist.data.store_writer import write_store
from permdist.data.trec import JudgedRun, Qrels, Run

__all__ = [
    "BattleBlocks",
    "BattleDescription",
    "Battles",
    "Description",
    "Fold",
    "JudgedRun",
    "Preferences",
    "Qrels",
    "Queries",
    "Query",
    "Run",
    "file_kind",
    "is_run",
    "is_store",
    "load_battles",
    "load_letor",
    "load_letor_folds",
    "load_orders",
    "load_preflib",
    "load_qrels",
    "load_run",
    "load_scores",
    "make_battles",
    "make_folds",
    "make_letor",
    "open_store",
    "read_battles",
    "save_letor",
    "save_run",
    "save_scores",
    "write_store",
]
