"""Measurement of the rate between hosts: short probes over real connections, ordered by senders.

`flows` orders a measurement, `source` and `sink` are its two ends, `arrivals` computes the rate. The client
(`blast_client.capacities`) schedules the rounds in which many hosts measure each other.
"""
