import torch

from confed import scoring
from confed.scoring import dot_scorer, fill


class Card:
    def __init__(self, clients):
        self.clients = torch.tensor(clients)
        self.seen = []

    def add(self, clients, logits):
        assert logits.shape == (len(clients), 5)
        self.seen += clients.tolist()


def test_whom_the_card_asks_for_is_scored_once_whatever_the_chunk(monkeypatch):
    users, items = torch.randn(9, 3), torch.randn(5, 3)
    for values in (1, 20, 10_000):
        monkeypatch.setattr(scoring, "_SCORE_VALUES", values)
        card = Card([7, 1, 4])
        fill(card, dot_scorer(users, items), 5)
        assert card.seen == [7, 1, 4]


def test_a_dot_product():
    users, items = torch.randn(9, 3), torch.randn(5, 3)
    torch.testing.assert_close(dot_scorer(users, items)(torch.tensor([2, 8])), users[[2, 8]] @ items.T)
