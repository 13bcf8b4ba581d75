"""Speed and memory, always as a ratio against something in the same run."""

import confed as confed  # before torch is loaded, whose waiting threads it keeps from spinning
