package org.blast.cluster;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.mapreduce.v2.MiniMRYarnCluster;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * HDFS and YARN with two NodeManagers, all in this process, until standard input ends. Each line is answered by the
 * bytes that this process has read from HDFS: what the NodeManagers have fetched for jobs is among them.
 */
public final class Cluster extends Configured implements Tool {
  private static final int NODES = 2;

  /** The argument, after -D …, is the folder that gets its configuration when it runs. */
  public static void main(String[] words) {
    int status = 1;
    try {
      status = ToolRunner.run(new Cluster(), words);
    } catch (Exception error) {
      error.printStackTrace();
    }
    // Its servers have threads that would keep a process alive in which one of them has not started.
    System.exit(status);
  }

  @Override
  public int run(String[] words) throws Exception {
    File disks = new File("hdfs").getAbsoluteFile();
    try (MiniDFSCluster hdfs = new MiniDFSCluster.Builder(getConf(), disks).numDataNodes(1).build();
        MiniMRYarnCluster yarn = new MiniMRYarnCluster("yarn", NODES)) {
      hdfs.waitActive();
      yarn.init(getConf());
      yarn.start();
      // Whichever comes last wins, and Hadoop's own defaults come between them.
      for (String site : new String[] {"core-site.xml", "mapred-site.xml", "yarn-site.xml"}) {
        try (OutputStream out = Files.newOutputStream(Path.of(words[0], site))) {
          yarn.getConfig().writeXml(out);
        }
      }
      System.out.println("ready");
      answer();
    }
    return 0;
  }

  private static void answer() throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    while (lines.readLine() != null) {
      System.out.println(FileSystem.getGlobalStorageStatistics().get("hdfs").getLong("bytesRead"));
    }
  }
}
