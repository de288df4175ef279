/**
 * Spark's broadcasts by Blast, without a change to the job: {@code spark.plugins=org.blast.spark.BlastPlugin}.
 *
 * <p>The half in the driver sees each broadcast as it is made, has its pieces sent to the agents of the executors'
 * hosts, and announces it to the executors by a connection of its own. The half in an executor holds readers of an
 * announced broadcast back until the pieces are here, and puts them where Spark looks first. An executor without a
 * working agent fetches them from executors that have them. Whatever does not come, or not in time, Spark fetches as
 * always.
 */
package org.blast.spark;
