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

/** For who writes the driver of a job: what {@code push} does, and the job told of it. */
public final class BlastCache {
  private static final Logger LOG = LoggerFactory.getLogger(BlastCache.class);

  private BlastCache() {}

  /**
   * Bring a file to the nodes of a job that is submitted after this. Where that cannot be, the job is as it would be
   * without Blast: its nodes read the original.
   *
   * @param job whose configuration says where Blast is
   * @param file in any file system that its nodes can reach too
   * @param link what it is called in the working directory of the tasks
   * @return which nodes have it
   * @throws Refused where it is no file, or not for everybody to read; nothing has happened then
   * @throws IOException where its file system does not say what it is
   */
  public static Delivery addCacheFile(Job job, Path file, String link) throws IOException {
    Configuration conf = job.getConfiguration();
    Push push = new Push(file, conf);
    job.addCacheFile(URI.create(BlastUri.written(push.uri()) + "#" + link));
    try {
      Delivery delivery = push.send(Nodes.agents(conf), new Settings(conf));
      delivery.failed().forEach((host, reason) -> LOG.warn("{} does not have {}: {}", host, file, reason));
      return delivery;
    } catch (IOException error) {
      LOG.warn("no node has a copy of {}: {}", file, error.toString());
      return new Delivery(List.of(), Map.of());
    }
  }
}
