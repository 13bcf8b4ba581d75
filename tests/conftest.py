"""One thread: tiny tensors gain nothing from two, and a busy machine makes threads wait for each other.

No deadlines: the first example of a property may compile a loop.
"""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("confed", deadline=None)
settings.load_profile("confed")
