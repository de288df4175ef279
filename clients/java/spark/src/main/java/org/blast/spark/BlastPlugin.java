package org.blast.spark;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/** The plugin for {@code spark.plugins}. On a host where it cannot work, it logs one line and disables itself. */
public final class BlastPlugin implements SparkPlugin {
  /** Creates the plugin; Spark calls this. */
  public BlastPlugin() {}

  @Override
  public DriverPlugin driverPlugin() {
    return new BlastDriverPlugin();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new BlastExecutorPlugin();
  }
}
