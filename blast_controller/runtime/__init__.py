"""The core in real time: the deciding thread, its inbox, and waiting clients."""
