package org.blast.spark;

/**
 * How long a task may be held back: no longer than Spark's own fetch would have taken.
 *
 * <p>TorrentBroadcast sends about log2(n + 1) copies over the driver's link to n hosts: 1.8 to 2.2 were measured with
 * three, 2.9 to 3.3 with seven. The link's rate bounds how fast that can go; whatever else Spark needs is left out.
 */
final class HoldTime {
  /** Whatever the link, nobody waits longer. */
  static final long MOST_MILLIS = 600_000;

  private HoldTime() {}

  /** Milliseconds that so many bytes take to so many hosts, by a link of so many bit/s. */
  static long millis(long bytes, int hosts, double linkRate) {
    double copies = Math.log(hosts + 1.0) / Math.log(2.0);
    return (long) Math.min(MOST_MILLIS, 1000.0 * copies * bytes * 8.0 / linkRate);
  }
}
