"""One thread: tiny tensors gain nothing from two, and a busy machine makes threads wait for each other."""

import torch

torch.set_num_threads(1)
