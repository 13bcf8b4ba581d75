import torch

from tests.conformance import assert_equal_states
from tests.silo_conformance import SiloConformance

SMALL = {"dim": 6, "batch_size": 32, "local_epochs": 2, "learning_rate": 0.01}


class TestFedMFSilo(SiloConformance):
    method = "fedmf-silo"
    options = {**SMALL, "train_negatives": 4}
    uploads = ("users",)

    def test_a_round_is_central_training_from_the_servers_rows(self):
        """With the server's rows in its table a company trains as the central model would."""
        engine = self.engine()
        name, silo = next(iter(engine.silos.items()))
        rows = engine._received(name).tensors["users"]
        model = self.engine().silos[name].model
        model.params["users"][silo.shared.users] = rows
        for epoch in (1, 2):
            model.train(epoch)
        silo.train(1, {"users": rows})
        assert_equal_states(silo.state(), model.state(), tolerance=0)

    def test_the_local_view_keeps_the_companys_own_rows(self):
        engine = self.engine_after_a_round(self.engine())
        name, silo = next(iter(engine.silos.items()))
        users = torch.arange(silo.data.users)
        own, other = silo.scorer()(users), silo.scorer(engine._received(name).tensors)(users)
        differs = (own != other).any(dim=1)
        assert set(torch.nonzero(differs)[:, 0].tolist()) == set(silo.shared.users.tolist())
        torch.testing.assert_close(own, silo.table @ silo.model.params["items"].T)


class TestFedGNNSilo(SiloConformance):
    method = "fedgnn-silo"
    options = SMALL
    uploads = ("users",)
