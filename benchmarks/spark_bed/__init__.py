"""Spark jobs that broadcast, for `benchmarks/spark_broadcast.py` and the tests of the lab."""
