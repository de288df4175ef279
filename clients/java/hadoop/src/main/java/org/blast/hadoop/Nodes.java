package org.blast.hadoop;

import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.exceptions.YarnException;

/** The agents on the hosts of running NodeManagers. */
final class Nodes {
  private Nodes() {}

  /**
   * Return each agent once, by YARN's name of its host, in the format of {@code blast send --to}.
   *
   * @throws IOException if the ResourceManager does not answer
   */
  static List<String> agents(Configuration conf) throws IOException {
    try (YarnClient yarn = YarnClient.createYarnClient()) {
      yarn.init(conf);
      yarn.start();
      return agents(yarn.getNodeReports(NodeState.RUNNING), new Settings(conf));
    } catch (YarnException error) {
      throw new IOException("cannot list the running nodes of the ResourceManager: " + error.getMessage(), error);
    }
  }

  static List<String> agents(List<NodeReport> nodes, Settings settings) {
    return nodes.stream()
        .map(node -> settings.agentOf(node.getNodeId().getHost()))
        .distinct()
        .sorted()
        .collect(Collectors.toList());
  }
}
