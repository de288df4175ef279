/**
 * Delivery of files to the local disks of a job's nodes before its tasks start.
 *
 * <p>{@link org.blast.hadoop.BlastTool} sends a file once, over the optical network or along a pipeline, to the agents
 * on the hosts of all NodeManagers. The distributed cache then reads the file through {@link
 * org.blast.hadoop.BlastFileSystem}, which returns the copy on the host, or the original if the host has no copy.
 */
package org.blast.hadoop;
