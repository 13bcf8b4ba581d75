import numpy as np
import torch

from confed.messages import Pull, PulledTables
from confed.methods.registry import method_named
from confed.testing import PeopleConformance, assert_equal_states, tiny
from confed.testing.states import whole_state

SMALL = {"dim": 6, "alpha": 5.0, "regularisation": 0.3, "init_deviation": 0.5}


def plainly(config, data, table):
    """Every client's vector, by the normal equations over all items, and the summed gradients of all items."""
    vectors, total = [], np.zeros_like(table)
    for user in range(data.users):
        liked = np.zeros(len(table))
        liked[data.positives[user]] = 1.0
        sure = np.diag(1.0 + config.alpha * liked)
        system = table.T @ sure @ table + config.regularisation * np.eye(table.shape[1])
        vector = np.linalg.solve(system, table.T @ sure @ liked)
        vectors.append(vector)
        total += np.outer(sure @ (liked - table @ vector), vector)
    return np.stack(vectors), total


class TestFCF(PeopleConformance):
    method = "fcf"
    served = "reconstructed"
    options = SMALL

    def test_a_round_equals_the_formulas(self) -> None:
        """Two rounds, so that Adam's moments count."""
        trainer, config, data = self.federation(chunk=7), self.terms().config, self.cut().training
        value = whole_state(trainer)["server.items"].clone().requires_grad_()
        adam = torch.optim.Adam([value], lr=config.learning_rate)
        for number in (1, 2):
            trainer.round(number)
            _, total = plainly(config, data, value.detach().numpy())
            value.grad = 2.0 * (config.regularisation * value.detach() - torch.from_numpy(total))
            adam.step()
            assert_equal_states(
                {"items": whole_state(trainer)["server.items"]}, {"items": value.detach()}, tolerance=1e-8
            )

    def test_clients_are_served_with_the_solution_of_the_moment_and_keep_nothing(self) -> None:
        trainer = self.federation()
        trainer.round(1)
        assert not [name for name in trainer.state() if name.startswith("client.")]
        people, download = self.people(trainer), trainer.server.download()
        cohort = people.reconstructed(download, np.arange(tiny.USERS))
        vectors, _ = plainly(self.terms().config, self.cut().training, download.tables["items"][0].numpy())
        torch.testing.assert_close(cohort.params["user"], torch.from_numpy(vectors)[cohort.clients])
        scores = cohort.params["user"] @ download.tables["items"][0].T
        torch.testing.assert_close(cohort.scores(), scores)


def test_pulled_tables_add_up_as_whole_ones_do():
    generator = torch.Generator().manual_seed(0)
    base, vectors = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((2, 7, 3), (4, 3)))
    extra, weights = (torch.rand(shape, generator=generator, dtype=torch.float64) for shape in ((4, 2), (4,)))
    index, base_of = torch.tensor([[1, 7], [0, 6], [5, 2], [7, 7]]), torch.tensor([0, 1, 1, 0])
    sent = PulledTables(base, base_of, index, Pull(vectors, extra))
    expected = torch.zeros(7, 3, dtype=torch.float64)
    for client in range(4):
        table = base[base_of[client]]
        along = -table @ vectors[client]
        for item, more in zip(index[client].tolist(), extra[client], strict=True):
            if item < 7:
                along[item] += more
        change = along[:, None] * vectors[client]
        torch.testing.assert_close(sent.dense()[client], table + change)
        expected += weights[client] * change
    total = torch.zeros(7, 3, dtype=torch.float64)
    sent.add_changes(weights, total)
    torch.testing.assert_close(total, expected)
    assert len(sent.of(torch.tensor([True, False, True, False]))) == 2


def test_a_surer_client_scores_its_items_nearer_to_one():
    method, near = method_named("fcf"), []
    for alpha in (0.0, 40.0):
        config = method.config(None, {**SMALL, "alpha": alpha})
        table = torch.randn(tiny.ITEMS, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        vectors, _ = plainly(config, tiny.cut().training, table.numpy())
        liked = tiny.cut().training.positives[0]
        near.append(float((table.numpy() @ vectors[0])[liked].mean()))
    assert near[0] < near[1] <= 1.0 + 1e-9
