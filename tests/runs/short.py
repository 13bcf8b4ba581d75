"""A short run."""

import confed
from tests import tiny

FEW = {"negatives": 15, "cutoffs": [5, 10], "dim": 4}


def train(data=None, **more):
    chosen = {"rounds": 3, "options": FEW, **more}
    return confed.run("pfedrec", tiny.interactions() if data is None else data, **chosen)
