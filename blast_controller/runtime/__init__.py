"""The core in real time: the deciding thread, its inbox, and waiting clients.

Start with `runtime.py`: events in, one decision for all that come together, one commit, then results out.
`group_commit.py` lets a batch be written while the next is decided on.
"""
