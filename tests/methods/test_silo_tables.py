import torch

from confed.testing import CompanyConformance, assert_equal_states
from tests.methods.companies import received

SMALL = {"dim": 6, "batch_size": 32, "local_epochs": 2, "learning_rate": 0.01}


class TestFedMFSilo(CompanyConformance):
    method = "fedmf-silo"
    options = {**SMALL, "train_negatives": 4}
    uploads = ("users",)

    def test_a_round_is_central_training_from_the_servers_rows(self):
        """With the server's rows in its table a company trains as the central model would."""
        trainer = self.federation()
        name, silo = next(iter(self.companies(trainer).silos.items()))
        rows = received(trainer, name)["users"]
        model = self.companies(self.federation()).silos[name].model
        model.params["users"][silo.shared.users] = rows
        for epoch in (1, 2):
            model.train(epoch)
        silo.train(1, {"users": rows})
        assert_equal_states(silo.state(), model.state(), tolerance=0)

    def test_the_local_view_keeps_the_companys_own_rows(self):
        trainer = self.trained(1)
        name, silo = next(iter(self.companies(trainer).silos.items()))
        users = torch.arange(silo.data.users)
        own, other = silo.scorer()(users), silo.scorer(received(trainer, name))(users)
        differs = (own != other).any(dim=1)
        assert set(torch.nonzero(differs)[:, 0].tolist()) == set(silo.shared.users.tolist())
        torch.testing.assert_close(own, silo.table @ silo.model.params["items"].T)


class TestFedGNNSilo(CompanyConformance):
    method = "fedgnn-silo"
    options = SMALL
    uploads = ("users",)
