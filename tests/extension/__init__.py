"""Things from outside the library, one file each, that `test_extension` adds to it."""
