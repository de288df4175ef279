"""The evaluation of the paper on rack-fabric multicast: simulations for each curve, and verdicts."""
