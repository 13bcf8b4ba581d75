"""Short runs."""

import confed
from confed.testing import tiny, tiny_domains

FEW = {"negatives": 15, "cutoffs": [5, 10], "dim": 4}


def train(data=None, **more):
    chosen = {"rounds": 3, "options": FEW, **more}
    return confed.run("pfedrec", tiny.interactions() if data is None else data, **chosen)


def train_companies(tmp_path, **more):
    options = {**FEW, "more_negatives": [], **more.pop("options", {})}
    return confed.run("fppdm++", more.pop("data", tiny_domains.domains()), options=options, out=tmp_path, **more)
