"""Faults put in on purpose: kills, signals, full disks, locked folders, lost workers.

Every case checks that nothing is lost: each file is the old one or the new one, whole, and what was
interrupted goes on to the result that it would have had.
"""
