"""A join for which Spark broadcasts the smaller table repeatedly, unlike its examples; for spark-submit.

    broadcast_join.py ROWS ITERATIONS

The smaller table has ROWS rows of a key and five random numbers, different in each iteration; the larger one has the
keys. The output is a checksum of all joined rows, independent of their order.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import broadcast, col, rand, xxhash64
from pyspark.sql.functions import sum as total

NUMBERS = 5


def main() -> None:
    """Do it."""
    rows, iterations = map(int, sys.argv[1:])
    spark = SparkSession.builder.appName("BroadcastJoin").getOrCreate()
    for iteration in range(iterations):
        numbers = [rand(iteration * NUMBERS + number).alias(f"n{number}") for number in range(NUMBERS)]
        small = spark.range(rows).select("id", *numbers)
        checksum = xxhash64("id", *(f"n{number}" for number in range(NUMBERS))).cast("decimal(38)")
        joined = spark.range(rows).join(broadcast(small), "id").select(total(checksum).alias("sum"))
        sys.stdout.write(f"{iteration}: {joined.select(col('sum').cast('string')).collect()[0][0]}\n")
    spark.stop()


if __name__ == "__main__":
    main()
