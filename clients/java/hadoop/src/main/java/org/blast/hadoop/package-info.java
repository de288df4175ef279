/**
 * Files on the local disks of a job's nodes before its tasks start.
 *
 * <p>{@link org.blast.hadoop.BlastTool} has a file sent once, by light or along a pipeline, to the agents beside all
 * NodeManagers. {@link org.blast.hadoop.BlastFileSystem} stands in front of the file where it is: the distributed cache
 * takes it from there as from any file system, and gets the copy of this host where there is one, and what the original
 * file system has where there is none.
 */
package org.blast.hadoop;
