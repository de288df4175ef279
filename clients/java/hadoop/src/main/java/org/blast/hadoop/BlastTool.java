package org.blast.hadoop;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** {@code hadoop jar blast-hadoop.jar push|remove}: copies on the nodes, from a shell. */
public final class BlastTool extends Configured implements Tool {
  static final int DONE = 0;
  static final int FAILED = 1;
  static final int WRONG_USE = 2;
  static final int PARTLY = 3;

  private static final String USE =
      "push [-D NAME=VALUE]… [--to HOST,…] [--json] FILE…, or remove [the same] URI…; see docs/how-to/hadoop.md";
  private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();

  private final String verb;
  private final PrintStream out;
  private final PrintStream err;
  private final List<String> names = new ArrayList<>();
  private List<String> agents;
  private boolean json;

  BlastTool(String verb, PrintStream out, PrintStream err) {
    this.verb = verb;
    this.out = out;
    this.err = err;
  }

  /**
   * Ends the process with 0 where all nodes have it, 3 some, 1 none, and 2 where it was used wrongly.
   *
   * @param words what stands on the command line
   * @throws Exception what nobody has foreseen
   */
  public static void main(String[] words) throws Exception {
    System.exit(run(words, new Configuration(), System.out, System.err));
  }

  static int run(String[] words, Configuration conf, PrintStream out, PrintStream err) throws Exception {
    String verb = words.length == 0 ? "" : words[0];
    String[] others = Arrays.copyOfRange(words, Math.min(1, words.length), words.length);
    // The generic options are read only where they come first.
    return ToolRunner.run(conf, new BlastTool(verb, out, err), others);
  }

  @Override
  public int run(String[] words) {
    try {
      read(words);
      return verb.equals("push") ? push() : remove();
    } catch (Refused | IllegalArgumentException error) {
      err.println("blast: " + error.getMessage());
      return WRONG_USE;
    } catch (IOException error) {
      err.println("blast: " + error.getMessage());
      return FAILED;
    }
  }

  private void read(String[] words) throws Refused {
    for (int at = 0; at < words.length; at++) {
      if (words[at].equals("--json")) {
        json = true;
      } else if (words[at].equals("--to") && at + 1 < words.length) {
        agents = List.of(words[++at].split(","));
      } else if (words[at].startsWith("-")) {
        throw new Refused(words[at] + " is no option here: " + USE);
      } else {
        names.add(words[at]);
      }
    }
    if (names.isEmpty() || !verb.equals("push") && !verb.equals("remove")) {
      throw new Refused(USE);
    }
  }

  private int push() throws IOException {
    List<Push> pushes = new ArrayList<>();
    for (String name : names) {
      pushes.add(new Push(new Path(name), getConf()));
    }
    findAgents();
    List<Delivery> deliveries = new ArrayList<>();
    for (Push push : pushes) {
      Delivery delivery = push.send(agents, new Settings(getConf()));
      deliveries.add(delivery);
      tell(push, delivery);
    }
    return status(deliveries);
  }

  private int remove() throws IOException {
    List<String> copies = new ArrayList<>();
    for (String name : names) {
      copies.add(Copies.name(name, getConf()));
    }
    findAgents();
    List<Delivery> deliveries = new ArrayList<>();
    for (String copy : copies) {
      Delivery delivery = Copies.remove(copy, agents, new Settings(getConf()));
      deliveries.add(delivery);
      delivery.failed().forEach((host, why) -> err.println("blast: " + host + " keeps its copy: " + why));
    }
    return status(deliveries);
  }

  private void findAgents() throws IOException {
    if (agents == null) {
      agents = Nodes.agents(getConf());
    }
    if (agents.isEmpty()) {
      throw new IOException("no NodeManager runs: start one, or name hosts with --to");
    }
  }

  private void tell(Push push, Delivery delivery) {
    String uri = BlastUri.written(push.uri());
    delivery.failed().forEach(
        (host, why) -> err.println("blast: " + host + " does not have " + uri + ": " + why));
    if (!json) {
      out.println(uri);
      return;
    }
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("uri", uri);
    line.put("copy", push.name());
    line.put("bytes", push.bytes());
    line.put("delivered", delivery.delivered());
    line.put("failed", delivery.failed());
    out.println(GSON.toJson(line));
  }

  static int status(List<Delivery> deliveries) {
    if (deliveries.stream().allMatch(one -> one.failed().isEmpty())) {
      return DONE;
    }
    return deliveries.stream().allMatch(one -> one.delivered().isEmpty()) ? FAILED : PARTLY;
  }
}
