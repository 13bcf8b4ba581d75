"""Golden states: what every method and variant had after two rounds, recorded before the house was rebuilt.

    python -m tests.golden                  # record all of them anew, the real ones too (CONFED_DATA)
    python -m tests.golden cofedrec fedmf   # only some

Whoever moves code without meaning to change results must still get these states. Recording anew is a statement: the
results were meant to change, and the commit says why. Bits differ between processors, so states are compared with
tolerances, discrete choices exactly.
"""
