"""Speed and memory, always as a ratio against something in the same run."""
