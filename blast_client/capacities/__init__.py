"""What the network between hosts carries, and where that is known from: agents that measure it, the controller, a file,
or a monitor of one's own. All of them give `Capacities`, which as JSON is what `blast trees` reads.
"""
