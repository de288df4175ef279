package org.blast.hadoop;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;

/** What Hadoop's configuration says of Blast: docs/how-to/hadoop.md has all of it. */
final class Settings {
  static final String COMMAND = "blast.command";
  static final String FOLDER_NAME = "blast.folder.name";
  static final String FOLDER_PATH = "blast.folder.path";
  static final String AGENT_USER = "blast.agent.user";
  static final String AGENT_PORT = "blast.agent.port";
  static final String SEND = "blast.send.";

  private static final int PORT = 9095;
  private static final Set<String> OURS = Set.of("to", "as", "name", "bytes", "folder", "command", "json");

  private final Configuration conf;

  Settings(Configuration conf) {
    this.conf = conf;
  }

  /** The {@code blast} of this host. */
  String command() {
    return conf.getTrimmed(COMMAND, "blast");
  }

  /** What agents call the folder. */
  String folderName() {
    return conf.getTrimmed(FOLDER_NAME, "hadoop");
  }

  /** Where it is on their hosts. */
  CopyFolder folder() {
    Path path = Path.of(conf.getTrimmed(FOLDER_PATH, "/srv/blast-hadoop"));
    return new CopyFolder(path, conf.getTrimmed(AGENT_USER, "blast-agent"));
  }

  /** The agent beside a NodeManager, as {@code blast send --to} takes it. */
  String agentOf(String host) {
    return host + ":" + conf.getInt(AGENT_PORT, PORT);
  }

  /**
   * Options of {@code blast send}: whatever is set below {@code blast.send.}
   *
   * @throws Refused where one is set that a push gives itself
   */
  List<String> options() throws Refused {
    Map<String, String> given = new TreeMap<>(conf.getPropsWithPrefix(SEND));
    List<String> options = new ArrayList<>();
    for (Map.Entry<String, String> one : given.entrySet()) {
      String value = one.getValue().trim();
      if (OURS.contains(one.getKey())) {
        throw new Refused(SEND + one.getKey() + " is not to be set: a push says that itself");
      }
      if (value.equals("false")) {
        continue;
      }
      options.add("--" + one.getKey());
      if (!value.equals("true")) {
        options.add(value);
      }
    }
    return options;
  }
}
