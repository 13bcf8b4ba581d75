"""Every central method inherits the part of the conformance suite that does not need clients."""

from confed.testing import MethodConformance


class TestPopularity(MethodConformance):
    method = "popularity"
    seeded = False


class TestEASE(MethodConformance):
    method = "ease"
    options = {"regularisation": 5.0}
    seeded = False
    threads = 1e-12


class TestIALS(MethodConformance):
    method = "ials"
    options = {"factors": 4, "iterations": 5}


class TestMF(MethodConformance):
    method = "mf"
    options = {"dim": 4, "learning_rate": 0.05}


class TestNeuMF(MethodConformance):
    method = "neumf"
    options = {"dim": 4, "learning_rate": 0.05}


class TestGMF(MethodConformance):
    method = "neumf"
    options = {"dim": 8, "batch_size": 64, "learning_rate": 0.01, "init_deviation": 0.1, "variant": "gmf"}


class TestMLP(MethodConformance):
    method = "neumf"
    options = {"dim": 8, "batch_size": 64, "learning_rate": 0.01, "init_deviation": 0.1, "variant": "mlp"}


class TestLightGCN(MethodConformance):
    method = "lightgcn"
    options = {"dim": 4, "learning_rate": 0.05, "batch_size": 64}


class TestPMLAM(MethodConformance):
    method = "pmlam"
    options = {"dim": 4, "learning_rate": 0.02, "batch_size": 500}
    threads = 1e-12


class TestPMLAMWithoutNeighbours(MethodConformance):
    """Two of the three networks never have anything to learn from."""

    method = "pmlam"
    threads = 1e-12
    options = {
        "dim": 3,
        "batch_size": 500,
        "learning_rate": 0.02,
        "train_negatives": 3,
        "regularisation": 0.01,
        "neighbour_threshold": 1.0,
    }
