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
 * HDFS and YARN with two NodeManagers in this process, until standard input ends. For each input line, it prints the
 * number of bytes that this process has read from HDFS, which includes the files that NodeManagers have fetched for
 * jobs.
 */
public final class Cluster extends Configured implements Tool {
  private static final int NODES = 2;

  /** Runs the cluster. The argument after -D … is the directory to which it writes its configuration. */
  public static void main(String[] arguments) {
    int status = 1;
    try {
      status = ToolRunner.run(new Cluster(), arguments);
    } catch (Exception error) {
      error.printStackTrace();
    }
    // If a server has not started, the threads of the others would keep the process alive.
    System.exit(status);
  }

  @Override
  public int run(String[] arguments) throws Exception {
    File disks = new File("hdfs").getAbsoluteFile();
    try (MiniDFSCluster hdfs = new MiniDFSCluster.Builder(getConf(), disks).numDataNodes(1).build();
        MiniMRYarnCluster yarn = new MiniMRYarnCluster("yarn", NODES)) {
      hdfs.waitActive();
      yarn.init(getConf());
      yarn.start();
      // All three files: later files override earlier ones, and Hadoop loads its defaults in between.
      for (String site : new String[] {"core-site.xml", "mapred-site.xml", "yarn-site.xml"}) {
        try (OutputStream out = Files.newOutputStream(Path.of(arguments[0], site))) {
          yarn.getConfig().writeXml(out);
        }
      }
      System.out.println("ready");
      printBytesRead();
    }
    return 0;
  }

  private static void printBytesRead() throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    while (lines.readLine() != null) {
      System.out.println(FileSystem.getGlobalStorageStatistics().get("hdfs").getLong("bytesRead"));
    }
  }
}
