"""What benchmarks/spark_broadcast.py has Spark do."""
