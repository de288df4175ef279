package org.blast.hadoop;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The programming interface for drivers of jobs: pushes a file and adds it to the job's distributed cache. */
public final class BlastCache {
  private static final Logger LOG = LoggerFactory.getLogger(BlastCache.class);

  private BlastCache() {}

  /**
   * Push a file to the nodes of a job before the job is submitted. If that fails, the nodes read the original, as they
   * do without Blast.
   *
   * @param job the job, with Blast's settings in its configuration
   * @param file a file in any file system that the nodes can reach
   * @param link name of the file in the working directory of the tasks
   * @return the nodes with and without a copy
   * @throws Refused if the path is not a file, or not readable by all users; then the job is unchanged
   * @throws IOException if the file system cannot return the file's status
   */
  public static Delivery addCacheFile(Job job, Path file, String link) throws IOException {
    Configuration conf = job.getConfiguration();
    Push push = new Push(file, conf);
    job.addCacheFile(URI.create(BlastUri.encode(push.uri()) + "#" + link));
    try {
      Delivery delivery = push.send(Nodes.agents(conf), new Settings(conf));
      delivery.failed().forEach((host, reason) -> LOG.warn("{} has no copy of {} and reads the original: {}", host,
          file, reason));
      return delivery;
    } catch (IOException error) {
      LOG.warn("no node has a copy of {}; all read the original: {}", file, error.toString());
      return new Delivery(List.of(), Map.of());
    }
  }
}
