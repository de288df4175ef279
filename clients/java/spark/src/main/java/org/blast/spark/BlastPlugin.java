package org.blast.spark;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/** What {@code spark.plugins} names. Each half switches itself off, with one line in the log, where it cannot work. */
public final class BlastPlugin implements SparkPlugin {
  /** As Spark makes it. */
  public BlastPlugin() {}

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverHalf();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorHalf();
  }
}
