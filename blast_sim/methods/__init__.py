"""Ways to multicast, one a file; each runs on the flow-level simulation."""

PACKET_METHODS = ("naive", "hdfs", "overlay", "pipeline", "trees", "torrent", "ip-multicast", "rack-fabric")
"""Those that need no optical network."""

METHODS = (*PACKET_METHODS, "blast")
