"""How fast data goes from one host to another: short probes over real connections, ordered by whoever may send here.

`flows` orders a measurement, `source` and `sink` are its two ends, `arrivals` makes a rate of what came when. The
rounds in which many hosts measure each other are the client's (`blast_client.capacities`).
"""
