package org.blast.spark;

import java.util.Collection;

/**
 * How long a task may be held back: no longer than Spark's own fetch would take.
 *
 * <p>TorrentBroadcast sends about log2(n + 1) copies over the driver's link to n hosts: 1.8 to 2.2 were measured with
 * three, 2.9 to 3.3 with seven. The link's rate bounds how fast that can go; whatever else Spark needs is left out.
 *
 * <p>Spark fetches broadcasts that are made together at the same time, and each gets an equal share of the link: until
 * a broadcast of s bytes is there, another with r bytes left gets min(r, s) of its own. The plugin sends one after
 * another.
 */
final class HoldTime {
  /** Maximum, for any link and any number of broadcasts. */
  static final long MAX_MILLIS = 600_000;

  private HoldTime() {}

  /**
   * Return the milliseconds that Spark's own fetch of a broadcast takes.
   *
   * @param bytes its size
   * @param before bytes left of each broadcast that is under way
   * @param hosts number of hosts that fetch it
   * @param linkRate bit/s of the driver's link
   */
  static long millis(long bytes, Collection<Long> before, int hosts, double linkRate) {
    double shared = bytes + before.stream().mapToDouble(left -> Math.min(left, bytes)).sum();
    return millis(shared * Math.log(hosts + 1.0) / Math.log(2.0), linkRate);
  }

  /** Return the milliseconds until the plugin has sent one copy of all broadcasts under way and then of this one. */
  static long sendMillis(long bytes, Collection<Long> before, double linkRate) {
    return millis(bytes + before.stream().mapToDouble(Long::doubleValue).sum(), linkRate);
  }

  private static long millis(double bytes, double linkRate) {
    return (long) Math.min(MAX_MILLIS, 1000.0 * bytes * 8.0 / linkRate);
  }
}
