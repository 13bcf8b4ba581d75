"""Every central method inherits the part of the conformance suite that does not need clients."""

from tests.conformance import TrainerConformance


class TestPopularity(TrainerConformance):
    method = "popularity"
    seeded = False


class TestEASE(TrainerConformance):
    method = "ease"
    options = {"regularisation": 5.0}
    seeded = False


class TestIALS(TrainerConformance):
    method = "ials"
    options = {"factors": 4, "iterations": 5}


class TestMF(TrainerConformance):
    method = "mf"
    options = {"dim": 4, "learning_rate": 0.05}


class TestNeuMF(TrainerConformance):
    method = "neumf"
    options = {"dim": 4, "learning_rate": 0.05}


class TestLightGCN(TrainerConformance):
    method = "lightgcn"
    options = {"dim": 4, "learning_rate": 0.05, "batch_size": 64}


class TestPMLAM(TrainerConformance):
    method = "pmlam"
    options = {"dim": 4, "learning_rate": 0.02, "batch_size": 500}
