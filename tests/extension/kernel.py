"""A kernel: three neighbors change places in a circle."""

from permdist.samplers import register_kernel
from permdist.samplers.kernels import accept, peek, pick, swap
from permdist.targets import compiled


@compiled
def rotation(target, state, rng):
    n = len(state.order)
    k, down = pick(rng, n - 1), pick(rng, 2)
    if k == n - 2:
        return False
    first, second = k + down, k + 1 - down
    before = state.value[0]
    swap(target, state, first, peek(target, state, first))
    value = peek(target, state, second)
    if accept(rng, value - before):
        swap(target, state, second, value)
        return True
    swap(target, state, first, before)
    return False


def register():
    """Let chains find it by its name."""
    register_kernel("rotation", rotation, sweep=0.5)
