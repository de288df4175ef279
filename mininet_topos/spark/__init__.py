"""`blast lab spark`: a Spark cluster in the racks of a lab, whose jobs run as they are, with the plugin and without.

Start with `cluster.py`.
"""
