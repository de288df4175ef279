package org.blast.spark;

import java.util.Collection;

/**
 * The time for which tasks wait for a broadcast: no longer than Spark's own fetch would take.
 *
 * <p>TorrentBroadcast sends about log2(n + 1) copies over the driver's link to n hosts: 1.8 to 2.2 were measured with
 * three, 2.9 to 3.3 with seven. The estimate is the link's rate bound; it ignores Spark's other costs.
 *
 * <p>Spark fetches concurrent broadcasts with equal shares of the link: by the time a broadcast of s bytes is complete,
 * another with r bytes left has received min(r, s) of its own. The plugin sends one broadcast after another.
 */
final class HoldTime {
  /** Maximum hold time, for any link and any number of broadcasts. */
  static final long MAX_MILLIS = 600_000;

  private HoldTime() {}

  /**
   * Return the milliseconds that Spark's own fetch of a broadcast takes.
   *
   * @param bytes its size
   * @param before bytes left of each broadcast in progress
   * @param hosts number of hosts that fetch it
   * @param linkRate bit/s of the driver's link
   */
  static long millis(long bytes, Collection<Long> before, int hosts, double linkRate) {
    double shared = bytes + before.stream().mapToDouble(left -> Math.min(left, bytes)).sum();
    return millis(shared * Math.log(hosts + 1.0) / Math.log(2.0), linkRate);
  }

  /** Return the milliseconds in which the plugin sends one copy of all broadcasts in progress, and then of this one. */
  static long sendMillis(long bytes, Collection<Long> before, double linkRate) {
    return millis(bytes + before.stream().mapToDouble(Long::doubleValue).sum(), linkRate);
  }

  private static long millis(double bytes, double linkRate) {
    return (long) Math.min(MAX_MILLIS, 1000.0 * bytes * 8.0 / linkRate);
  }
}
