"""How the package is built from a clone; nothing here is used once it is installed."""
