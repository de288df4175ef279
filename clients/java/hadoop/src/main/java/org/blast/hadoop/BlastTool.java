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

/** The command {@code hadoop jar blast-hadoop.jar push|remove}, which creates and removes copies on the nodes. */
public final class BlastTool extends Configured implements Tool {
  static final int DONE = 0;
  static final int FAILED = 1;
  static final int USAGE_ERROR = 2;
  static final int PARTIAL = 3;

  private static final String USAGE =
      "push|remove [-D NAME=VALUE]… [--to HOST,…] [--json] FILE|URI…; see docs/how-to/hadoop.md";
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
   * Runs the tool and exits with 0 if all nodes have the copy, 3 if some have, 1 if none has, and 2 for wrong usage.
   *
   * @param arguments the command line
   * @throws Exception an unexpected error
   */
  public static void main(String[] arguments) throws Exception {
    System.exit(run(arguments, new Configuration(), System.out, System.err));
  }

  static int run(String[] arguments, Configuration conf, PrintStream out, PrintStream err) throws Exception {
    String verb = arguments.length == 0 ? "" : arguments[0];
    String[] rest = Arrays.copyOfRange(arguments, Math.min(1, arguments.length), arguments.length);
    // ToolRunner parses the generic options only before all other arguments.
    return ToolRunner.run(conf, new BlastTool(verb, out, err), rest);
  }

  @Override
  public int run(String[] arguments) {
    try {
      read(arguments);
      return verb.equals("push") ? push() : remove();
    } catch (Refused | IllegalArgumentException error) {
      err.println("blast: " + error.getMessage());
      return USAGE_ERROR;
    } catch (IOException error) {
      err.println("blast: " + error.getMessage());
      return FAILED;
    }
  }

  private void read(String[] arguments) throws Refused {
    for (int at = 0; at < arguments.length; at++) {
      if (arguments[at].equals("--json")) {
        json = true;
      } else if (arguments[at].equals("--to") && at + 1 < arguments.length) {
        agents = List.of(arguments[++at].split(","));
      } else if (arguments[at].startsWith("-")) {
        throw new Refused("unknown option " + arguments[at] + "; usage: " + USAGE);
      } else {
        names.add(arguments[at]);
      }
    }
    if (names.isEmpty() || !verb.equals("push") && !verb.equals("remove")) {
      throw new Refused("usage: " + USAGE);
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
      print(push, delivery);
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
      delivery.failed().forEach((host, reason) -> err.println("blast: cannot remove the copy on " + host + ": "
          + reason));
    }
    return status(deliveries);
  }

  private void findAgents() throws IOException {
    if (agents == null) {
      agents = Nodes.agents(getConf());
    }
    if (agents.isEmpty()) {
      throw new IOException("no NodeManager is running: start one, or pass hosts with --to");
    }
  }

  private void print(Push push, Delivery delivery) {
    String uri = BlastUri.encode(push.uri());
    delivery.failed().forEach(
        (host, reason) -> err.println("blast: " + host + " has no copy of " + uri + ": " + reason));
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
    return deliveries.stream().allMatch(one -> one.delivered().isEmpty()) ? FAILED : PARTIAL;
  }
}
