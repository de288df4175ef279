/**
 * A plugin that transfers Spark's broadcasts with Blast. Jobs need no change: {@code
 * spark.plugins=org.blast.spark.BlastPlugin}.
 *
 * <p>The driver plugin detects each new broadcast, sends its pieces to the agents on the executors' hosts, and
 * announces it to the executors over its own connections. The executor plugin blocks readers of an announced broadcast
 * until the pieces have arrived, and stores them where Spark looks first. An executor without a working agent fetches
 * the pieces from executors that have them. Spark fetches late or missing pieces itself.
 */
package org.blast.spark;
