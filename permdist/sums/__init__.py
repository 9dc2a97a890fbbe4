"""The exact engines: sums over orders, interleavings, sign vectors and noisy scores.

Nothing here knows distributions or learners; these are thin callers.

- `shape`, `lattice`: any log-weight per state and next class.
- `interleavings`: the good-bad pair model over interleavings of one query's classes; `levels` and
  `two_classes` are its engines, `batch` runs them over many queries.
- `subsets`: the good-bad pair model over all orders or all valid sign vectors of a few items;
  `blocks`: the part of the latter with given orders of two classes.
- `pairs`: the good-bad pair model over sign vectors, in closed form; `rows`: the same for measures
  of positions, with the goods in a fixed order.
- `utilities`: quadrature over independent noisy scores.
- `gaussian_positions`, `luce_positions`, `exposures`: sums over positions under Gaussian noise and
  that of Plackett-Luce, for batches of queries; `positions` runs them in threads.
- `davidson_sets`, `davidson_draws`, `davidson_slopes`: rankings with ties: sums over all of few
  items, draws, and derivatives of single records; `davidson`: likelihoods for fits.
"""
