"""The core on real time: one thread that decides, its inbox, and those who wait for it."""
