"""What tests of companies ask of a federation of them."""

import torch


def silos_of(trainer):
    """By domain."""
    return trainer.federation.site.gateway.silos


def received(trainer, name):
    """What the server sends a company at the start of the next round, in the order of its shared users."""
    place = list(silos_of(trainer)).index(name)
    message = trainer.server.download().of(torch.tensor([place]))
    return trainer.federation.site.gateway.about(name, message)
