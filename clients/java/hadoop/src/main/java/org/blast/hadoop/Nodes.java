package org.blast.hadoop;

import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.exceptions.YarnException;

/** The agents beside those NodeManagers that run. */
final class Nodes {
  private Nodes() {}

  /**
   * Each once, by the name that YARN has for its host, as {@code blast send --to} takes it.
   *
   * @throws IOException where the ResourceManager does not answer
   */
  static List<String> agents(Configuration conf) throws IOException {
    try (YarnClient yarn = YarnClient.createYarnClient()) {
      yarn.init(conf);
      yarn.start();
      return agents(yarn.getNodeReports(NodeState.RUNNING), new Settings(conf));
    } catch (YarnException error) {
      throw new IOException("the ResourceManager does not say which nodes run: " + error.getMessage(), error);
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
