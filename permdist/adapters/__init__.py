"""The objectives as losses of other libraries: boosted trees, PyTorch, JAX."""

__all__: list[str] = []
