"""Ratings from battles or ballots: a leaderboard, its errors, and how well the model fits."""

from permdist.rating.checks import Goodness, battle_chances
from permdist.rating.ratings import Rating, rate, rate_slices

__all__ = ["Goodness", "Rating", "battle_chances", "rate", "rate_slices"]
