"""The evaluation of the paper on rack-fabric multicast: simulations for each curve, and verdicts.

Start with `claims.py`, the statements with their verdicts, and `evaluation.py`, which simulates.
"""
