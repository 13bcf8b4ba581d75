import numpy as np
import torch
from benchmarks.plain import PlainFederation, PlainNeuMF, PlainStep

from confed.testing.tiny import ITEMS, USERS
from tests.oracle import Oracle, OracleConformance


class TestFedNCF(OracleConformance):
    method = "fedncf"
    options = {"batch_size": 16, "dim": 8, "local_epochs": 2}

    def oracle(self, config, items):
        layers = range(len(config.tower))
        nets = {f"weight_{i}": f"layers.{i}.weight" for i in layers}
        nets |= {f"bias_{i}": f"layers.{i}.bias" for i in layers}
        nets |= {"head": "output.weight", "head_bias": "output.bias"}
        embeddings = {"gmf_user": "gmf_user", "mlp_user": "mlp_user"}
        tables = {"gmf_items": "gmf_items.weight", "mlp_items": "mlp_items.weight"}
        return Oracle(
            PlainFederation(
                PlainNeuMF(items, config.dim, config.tower),
                (PlainStep({"": config.learning_rate}, "adam"),),
                config.local_epochs,
                config.batch_size,
            ),
            names={**nets, **embeddings, **tables},
            merge=dict.fromkeys(nets, "weighted_mean") | dict.fromkeys(tables, "mean_over_holders"),
        )

    def test_a_row_trained_by_one_client_is_that_clients_row(self):
        """A mean over holders, of whom there is one (decisions.md "fedncf")."""
        trainer = self.federation()
        download = trainer.server.download()
        cohort = self.people(trainer).train_chunk(1, download, np.arange(USERS))
        touched = cohort.rows.touched
        holders = torch.bincount(touched.reshape(-1), minlength=ITEMS + 1)[:ITEMS]
        alone = torch.nonzero(holders == 1)[:, 0]
        merged = self.trained(1).state()["server.gmf_items"]
        for item in alone.tolist():
            row, slot = torch.nonzero(touched == item)[0].tolist()
            torch.testing.assert_close(merged[item], cohort.tables["gmf_items"][row, slot], rtol=0, atol=1e-12)
        nobody = torch.nonzero(holders == 0)[:, 0]
        assert torch.equal(merged[nobody], download.tables["gmf_items"][0][nobody])


class TestGMF(TestFedNCF):
    options = {"batch_size": 16, "dim": 8, "variant": "gmf"}

    def oracle(self, config, items):
        raise NotImplementedError

    def test_cohort_equals_the_oracle(self):
        """Without a tower GMF is a dot product with a learned metric; the oracle is written for NeuMF."""
        backbone = self.people(self.federation()).backbone
        gen = torch.Generator().manual_seed(0)
        params = {p.name: torch.randn(3, *p.shape, generator=gen) for p in backbone.params if p.role != "item"}
        rows = torch.randn(3, 5, 8, generator=gen)
        expected = (rows * (params["gmf_user"] * params["head"])[:, None]).sum(-1) + params["head_bias"]
        torch.testing.assert_close(backbone.logits(params, {"gmf_items": rows}), expected)
