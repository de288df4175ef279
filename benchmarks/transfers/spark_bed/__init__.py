"""Spark jobs that broadcast, for `benchmarks/transfers/spark_broadcast.py` and the tests of the lab."""
