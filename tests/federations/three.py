"""Three clients and what they changed: 0 changed row 1, 1 changed rows 1 and 2, 2 drew row 0 and left it as it was."""

import torch

from confed.federations.gateway import Gateway
from confed.messages import Agreement, HeldTables, TableRows, Upload

BEFORE = torch.arange(8.0, dtype=torch.float64).view(4, 2)
AFTER = [BEFORE.clone() for _ in range(3)]
AFTER[0][1] += 3.0
AFTER[1][1] += 5.0
AFTER[1][2] -= 1.0
INDEX = torch.tensor([[1, 4], [1, 2], [0, 4]])
HELD = torch.stack([torch.isin(torch.arange(4), row) for row in INDEX])
SAMPLES = torch.tensor([1, 3, 4])
KEPT = torch.arange(36.0, dtype=torch.float64).view(3, 4, 3)
CLIENTS = torch.arange(3)
RULES = ["participants", "samples", "holders", "sum"]
CHUNKS = [((0, 1, 2),), ((0,), (1,), (2,)), ((2, 0), (1,))]
BASES = {"items": BEFORE, "net": torch.zeros(1, dtype=torch.float64), "own": torch.zeros(4, 3, dtype=torch.float64)}
FACTS = frozenset({"samples", "held", "loss"})


def upload(chunk, ids=CLIENTS):
    """Of some of them: a shared table, a network and a table that clients keep."""
    some = torch.tensor(chunk, dtype=torch.int64)
    rows = torch.stack([torch.cat([AFTER[c], torch.zeros(1, 2)])[INDEX[c]] for c in chunk])
    table = TableRows(BEFORE[None], torch.zeros(len(some), dtype=torch.int64), INDEX[some], rows)
    facts = {"samples": SAMPLES[some], "held": HELD[some], "loss": some.double()}
    own = HeldTables(KEPT, some)
    return Upload(ids[some], {"items": table, "net": some[:, None].double() * 10, "own": own, **facts})


def nobody():
    """An upload of nobody."""
    none = torch.zeros(0, dtype=torch.float64)
    table = none.view(0, 4, 2)
    facts = {"samples": none.long(), "held": torch.zeros(0, 4, dtype=torch.bool), "loss": none}
    return Upload(none.long(), {"items": table, "net": none.view(0, 1), "own": none.view(0, 4, 3), **facts})


def expected(over, clients=(0, 1, 2)):
    """What the table becomes by definition, one client after another."""
    change = torch.stack([AFTER[c] - BEFORE for c in clients])
    if over == "samples":
        weights = SAMPLES[list(clients)].double()
        return BEFORE + (change * weights[:, None, None]).sum(0) / weights.sum()
    if over == "holders":
        counts = torch.stack([torch.isin(torch.arange(4), INDEX[c]) for c in clients]).sum(0).clamp(min=1)
        return BEFORE + change.sum(0) / counts[:, None]
    return BEFORE + (change.sum(0) if over == "sum" else change.mean(0))


def agreement(plan, needs="sum", uploads=None):
    shapes = {name: tuple(base.shape) for name, base in BASES.items()}
    received, kept = {name: shapes[name] for name in ("items", "net")}, {"own": shapes["own"]}
    return Agreement(4, torch.float64, received, kept, uploads or frozenset(plan) | FACTS, plan, needs)


class Three(Gateway):
    """Sends what it is told to send."""

    def __init__(self, agreed, uploads):
        self.agreement = agreed
        self.ids = CLIENTS
        self.uploads = uploads
        self.heard = []
        """What happened here, in its order."""
        self.kept = torch.zeros(3, 2)

    def train(self, number, download, clients, cards):
        self.heard.append(f"train {number}")
        yield from self.uploads
        self.kept += number
        self._fill(cards)

    def score(self, download, cards):
        self.heard.append("score")
        self._fill(cards)

    def _fill(self, cards):
        for card in cards.values():
            card.add(self.ids, torch.full((3, 4), float(self.kept[0, 0])))

    def users_of(self, clients):
        return dict.fromkeys(["", "a", "b"])

    def receive(self, push):
        self.heard.append("push")

    def notes(self):
        return {"losses": {"a": 1.0}}

    def state(self):
        return {"client.kept": self.kept}

    def load(self, state):
        self.kept.copy_(state["client.kept"])
