"""Old places of names that now live in `permdist.sums`."""

from permdist.sums.lattice import MAX_EXPONENT as MAX_EXPONENT
from permdist.sums.lattice import Lattice as Lattice
from permdist.sums.shape import MAX_CELLS as MAX_CELLS
from permdist.sums.shape import Shape as Shape
from permdist.sums.shape import level_steps as grade_table

__all__ = ["MAX_CELLS", "MAX_EXPONENT", "Lattice", "Shape", "grade_table"]
