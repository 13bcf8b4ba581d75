"""A harness of faults: what nobody should write, from a seed, and whether it is taken or refused as it should be.

`files.cases(seed)` yields malformed files, `files.outcome(case, folder)` says what becomes of one. The suite runs a
part of them; the long form runs as many as one likes.
"""
