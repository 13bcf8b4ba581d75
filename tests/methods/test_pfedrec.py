import numpy as np
import pytest
import torch
from benchmarks.plain import PlainFederation, PlainLinear, PlainStep

from confed.methods.registry import method_named
from confed.testing.tiny import ITEMS, USERS
from tests.oracle import Oracle, OracleConformance


class PFedRecConformance(OracleConformance):
    options = {"batch_size": 16, "local_epochs": 2, "dim": 8}

    def oracle(self, config, items):
        head = PlainStep({"affine": config.learning_rate})
        table = PlainStep({"embedding": config.item_rate(items)})
        return Oracle(
            PlainFederation(PlainLinear(items, config.dim), (head, table), config.local_epochs, config.batch_size),
            names={"items": "embedding.weight", "weight": "affine.weight", "bias": "affine.bias"},
            merge={"items": "mean"},
        )


class TestLocalOnly(PFedRecConformance):
    method = "local-only"

    def test_nothing_travels_but_the_loss(self):
        self.check_that_only_the_loss_travels()


class TestPFedRec(PFedRecConformance):
    method = "pfedrec"

    def test_views(self):
        assert self.trainer().views == ("local", "global")

    def test_server_table_is_the_exact_mean(self):
        trainer = self.federation()
        cohort = self.people(trainer).train_chunk(1, trainer.server.download(), np.arange(USERS))
        dense = cohort.upload(["items"]).tensors["items"].dense()
        found = self.trained(1).state()["server.items"]
        torch.testing.assert_close(found, dense.mean(dim=0), rtol=0, atol=1e-12)

    def test_rows_nobody_draws_do_not_move(self):
        trainer = self.federation()
        before = trainer.state()["server.items"].clone()
        cohort = self.people(trainer).train_chunk(1, trainer.server.download(), np.array([0]))
        dense = cohort.upload(["items"]).tensors["items"].dense()[0]
        untouched = np.setdiff1d(np.arange(ITEMS), cohort.rows.touched[0].numpy())
        assert len(untouched) and torch.equal(dense[untouched], before[untouched])

    def test_each_step_moves_its_own_parameters_only(self):
        config = method_named("pfedrec").config("tiny", self.options)
        head, items = config.procedure(ITEMS).steps
        assert set(head.rates) == {"weight", "bias"}
        assert items.rates == {"items": pytest.approx(0.1 * ITEMS * 80)}

    def test_saturating_bce_freezes_saturated_errors(self):
        """The published form gives no gradient to a wrong prediction at a logit of 20; ours does."""
        from confed.clients.objectives import BCE, Batch, SaturatingBCE

        for term, expected in ((BCE(), 1.0), (SaturatingBCE(), 0.0)):
            logits = torch.tensor([[20.0]], requires_grad=True)
            value = term.value(Batch(logits, torch.zeros(1, 1), torch.ones(1, 1), {}, {}))
            value.sum().backward()
            assert logits.grad.item() == pytest.approx(expected)

    def test_lastfm_uses_its_own_learning_rate(self):
        method = method_named("pfedrec")
        assert method.config("lastfm-2k", {}).learning_rate == 0.05
        assert method.config("lastfm-2k", {"learning_rate": 0.2}).learning_rate == 0.2


def test_bytes_are_dense_tables_both_ways():
    """decisions.md "Traffic": |P| · m · d floats up and down, and a header of some hundred bytes."""
    done = TestPFedRec().trainer(dtype="float32").round(1)
    for way in (done.upload_bytes, done.download_bytes):
        assert 0 < way / USERS - ITEMS * 8 * 4 < 500
