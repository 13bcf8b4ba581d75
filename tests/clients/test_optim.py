import pytest
import torch

from confed.clients.optim import OPTIMISERS, SGD, Adam

TORCH = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_each_client_steps_as_torch_would_alone(name):
    """Clients run out of batches at different times; each must match its own torch optimiser on a dense table."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    vector = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    table, param = start.clone(), vector.clone()
    ours = OPTIMISERS[name]()
    alone_tables = [torch.nn.Parameter(t.clone()) for t in start]
    alone_params = [torch.nn.Parameter(v.clone()) for v in vector]
    theirs = [TORCH[name]([t, p], lr=0.05) for t, p in zip(alone_tables, alone_params, strict=True)]
    for active in (3, 3, 2, 1, 2, 3):
        index = torch.randint(0, 5, (active, 6), generator=generator)
        row_gradient = torch.randn(active, 6, 4, generator=generator, dtype=torch.float64)
        gradient = torch.randn(active, 4, generator=generator, dtype=torch.float64)
        ours.step_rows("table", table, index, row_gradient, 0.05)
        ours.step("param", param, gradient, 0.05)
        for client in range(active):
            dense = torch.zeros(5, 4, dtype=torch.float64)
            for slot in range(6):
                dense[index[client, slot]] += row_gradient[client, slot]
            alone_tables[client].grad = dense
            alone_params[client].grad = gradient[client].clone()
            theirs[client].step()
    torch.testing.assert_close(table, torch.stack(list(alone_tables)).detach(), rtol=0, atol=1e-12)
    torch.testing.assert_close(param, torch.stack(list(alone_params)).detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("optimiser", [SGD, Adam])
def test_a_rate_per_client(optimiser):
    """A rate of zero holds a client still; the others step as with a common rate."""
    rates = torch.tensor([0.1, 0.0], dtype=torch.float64)
    param, gradient = torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64)
    common = param.clone()
    optimiser().step("x", param, gradient, rates)
    optimiser().step("x", common, gradient, 0.1)
    assert torch.equal(param[1], torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(param[0], common[0])
    table, index = torch.ones(2, 2, 3, dtype=torch.float64), torch.zeros(2, 1, dtype=torch.int64)
    optimiser().step_rows("x", table, index, gradient[:, None], rates)
    assert torch.equal(table[1], torch.ones(2, 3, dtype=torch.float64))
    torch.testing.assert_close(table[0, 0], common[0])
