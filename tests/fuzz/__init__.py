"""Coverage-guided fuzzing of whatever the library reads: see README.md beside this file.

`target` declares what is fuzzed, `expect` states what must hold; `python tests/fuzz` runs it all.
"""
