"""Estimates of worths from ballots, their errors, and what follows from them."""
