"""The evaluation of the paper on rack-fabric multicast: what is simulated for each curve, and what is said of it."""
