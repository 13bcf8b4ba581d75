"""Some clients in one place: their training data and what they keep, one phone or a hundred thousand in a simulation.

There are two kinds: people (`clients.gateway`) and companies (`silos.gateway`). A gateway knows neither the server nor
who judges: it takes what was sent to its clients, trains them, and hands out what they send. Who else is held here
changes nothing for a client. Clients are given by their places in the gateway.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from torch import Tensor

from confed.copies import copied
from confed.data.interactions import ONLY
from confed.messages import Agreement, Download, Push, Upload
from confed.privacy.filters import NO_FILTERS, Chain
from confed.scoring import Card
from confed.stateful import Stateful

Cards = Mapping[str, Card]
"""Who takes scores, by domain; of people there is one, `ONLY`."""


class Gateway(Stateful):
    """Holds clients with the ids `ids`."""

    ids: Tensor
    domains: Collection[str] = (ONLY,)
    """Whose items its clients have: of companies, their names."""
    agreement: Agreement
    filters: Chain = NO_FILTERS
    """What uploads pass before they leave."""
    seed: int = 0

    @abstractmethod
    def train(self, number: int, download: Download, clients: Tensor, cards: Cards) -> Iterator[Upload]:
        """Local training of `clients` in round `number`; what they send, some after others, and their loss.

        The cards get the scores of these clients with what they have then: the `local` view.
        """

    @abstractmethod
    def score(self, download: Download, cards: Cards) -> None:
        """Hand out the scores that the cards ask for, with what the server shares, and what is the clients' own of
        what it does not.
        """

    @abstractmethod
    def users_of(self, clients: Tensor) -> dict[str, Tensor | None]:
        """By domain, the users whose scores are about `clients`; None is everybody there."""

    def receive(self, push: Push) -> None:
        """Take what the server gives to clients who keep their tables."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing that could be pushed")

    def called(self, client: int) -> str | None:
        """What records call the client with this id, if it has a name of its own."""
        return None

    def notes(self) -> dict[str, Any]:
        """What a simulation may see of the last round beside the messages; plain JSON."""
        return {}

    def serving_state(self) -> dict[str, Tensor]:
        """What scores depend on."""
        return self.state()

    def serving_copies(self) -> dict[str, Tensor]:
        """The same, whatever the next round makes of it."""
        return copied(self.serving_state())
