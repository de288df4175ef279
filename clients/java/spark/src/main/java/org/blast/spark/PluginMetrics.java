package org.blast.spark;

import com.codahale.metrics.MetricRegistry;

/** The counters in Spark's metrics, under the driver's {@code plugin.org.blast.spark.BlastPlugin}. */
final class PluginMetrics {
  private final MetricRegistry registry = new MetricRegistry();

  void sent(BroadcastSent sent) {
    registry.counter("broadcasts." + sent.way()).inc();
    registry.timer("seconds").update((long) (sent.seconds() * 1e9), java.util.concurrent.TimeUnit.NANOSECONDS);
  }

  void taken(BroadcastTaken taken) {
    registry.counter("pieces.blast").inc(taken.pieces());
    registry.counter("pieces.late").inc(taken.late());
    registry.counter("bytes").inc(taken.bytes());
    registry.counter("heldMillis").inc(taken.heldMillis());
  }

  void refused(String reason) {
    registry.counter("refused." + reason).inc();
  }

  MetricRegistry registry() {
    return registry;
  }
}
