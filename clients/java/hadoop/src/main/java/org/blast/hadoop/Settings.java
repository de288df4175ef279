package org.blast.hadoop;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;

/** The settings of Blast in Hadoop's configuration; docs/how-to/hadoop.md describes them. */
final class Settings {
  static final String COMMAND = "blast.command";
  static final String FOLDER_NAME = "blast.folder.name";
  static final String FOLDER_PATH = "blast.folder.path";
  static final String AGENT_USER = "blast.agent.user";
  static final String AGENT_PORT = "blast.agent.port";
  static final String SEND = "blast.send.";

  private static final int PORT = 9095;
  private static final Set<String> RESERVED = Set.of("to", "as", "name", "bytes", "folder", "command", "json");

  private final Configuration conf;

  Settings(Configuration conf) {
    this.conf = conf;
  }

  /** Return the path of {@code blast} on this host. */
  String command() {
    return conf.getTrimmed(COMMAND, "blast");
  }

  /** Return the agents' name of the folder. */
  String folderName() {
    return conf.getTrimmed(FOLDER_NAME, "hadoop");
  }

  /** Return the folder on the agents' hosts. */
  CopyFolder folder() {
    Path path = Path.of(conf.getTrimmed(FOLDER_PATH, "/srv/blast-hadoop"));
    return new CopyFolder(path, conf.getTrimmed(AGENT_USER, "blast-agent"));
  }

  /** Return the agent on a NodeManager's host, in the format of {@code blast send --to}. */
  String agentOf(String host) {
    return host + ":" + conf.getInt(AGENT_PORT, PORT);
  }

  /**
   * Return the options of {@code blast send}: the settings below {@code blast.send.}
   *
   * @throws Refused if a setting is an option that a push passes itself
   */
  List<String> options() throws Refused {
    Map<String, String> given = new TreeMap<>(conf.getPropsWithPrefix(SEND));
    List<String> options = new ArrayList<>();
    for (Map.Entry<String, String> one : given.entrySet()) {
      String value = one.getValue().trim();
      if (RESERVED.contains(one.getKey())) {
        throw new Refused(SEND + one.getKey() + " must not be set, since a push sets this option: remove it");
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
