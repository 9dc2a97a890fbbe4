"""What is fuzzed: importing this package declares every target."""

from fuzz.targets import arrays, commands, models, names, readers, state

__all__ = ["arrays", "commands", "models", "names", "readers", "state"]
