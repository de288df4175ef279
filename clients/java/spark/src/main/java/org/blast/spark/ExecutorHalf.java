package org.blast.spark;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The plugin in an executor: listens to the driver's half, and takes the broadcasts that come to this host, or, without
 * an agent's folder, fetches them from executors on other hosts.
 */
final class ExecutorHalf implements ExecutorPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorHalf.class);
  private static final int CONNECT_MILLIS = 5_000;
  private static final int WELCOME_MILLIS = 1_000;
  private static final String AGENT_PORT = "9095";
  private static final String FOLDER = "/var/lib/blast-agent/incoming";

  private final CountDownLatch welcomed = new CountDownLatch(1);
  private volatile boolean ended;
  private volatile Socket socket;

  @Override
  public void init(PluginContext context, Map<String, String> extra) {
    if (!extra.containsKey(DriverHalf.KEY) || context.executorID().equals("driver")) {
      return;
    }
    Daemon.start("blast", () -> listen(context, extra));
    // What was broadcast before there were executors must be announced before their first tasks read it.
    try {
      welcomed.await(WELCOME_MILLIS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void shutdown() {
    ended = true;
    try (Socket closed = socket) {
      LOG.debug("Blast ends: {}", closed);
    } catch (IOException error) {
      LOG.debug("Blast ends", error);
    }
  }

  private void listen(PluginContext context, Map<String, String> extra) {
    try {
      SparkInternals spark = SparkInternals.find();
      Path base = Path.of(setting(context, "executorFolder", "BLAST_FOLDER", FOLDER));
      // Let go of at the end, however that comes: when no executor claims it any more, the agent removes it.
      try (HostFolder folder = folder(base, context.conf().get("spark.app.id"))) {
        converse(context, extra, spark, folder);
      }
    } catch (SwitchedOff off) {
      LOG.warn("Blast is off in this executor, and Spark fetches broadcasts as always: {}", off.getMessage());
    } catch (IOException | RuntimeException error) {
      if (!ended) {
        LOG.warn("Blast has ended in this executor, and Spark fetches broadcasts as always: {}", error.toString());
      }
    } finally {
      welcomed.countDown();
    }
  }

  /** Return the application's folder; null where this host has no agent for it. */
  private static HostFolder folder(Path base, String application) {
    try {
      return new HostFolder(base, application);
    } catch (SwitchedOff off) {
      LOG.warn("this executor gets broadcasts from other executors: {}", off.getMessage());
      return null;
    }
  }

  private void converse(PluginContext context, Map<String, String> extra, SparkInternals spark, HostFolder folder)
      throws IOException {
    try (Socket connection = new Socket()) {
      socket = connection;
      if (ended) {
        return;
      }
      int port = Integer.parseInt(extra.get(DriverHalf.PORT));
      connection.connect(new InetSocketAddress(extra.get(DriverHalf.ADDRESS), port), CONNECT_MILLIS);
      connection.setTcpNoDelay(true);
      connection.setKeepAlive(true);
      byte[] nonce = new byte[Sealed.NONCE_BYTES];
      new SecureRandom().nextBytes(nonce);
      Sealed lines = new Sealed(
          Base64.getDecoder().decode(extra.get(DriverHalf.KEY)),
          new BufferedInputStream(connection.getInputStream()),
          new BufferedOutputStream(connection.getOutputStream()),
          nonce,
          false);
      String address = folder == null ? null : connection.getLocalAddress().getHostAddress();
      say(lines, Message.of(hello(context, spark, address)));
      try (Arrivals arrivals = new Arrivals(spark, folder, message -> say(lines, message), welcomed)) {
        for (String text = lines.read(); text != null; text = lines.read()) {
          arrivals.hear(Message.read(text));
        }
      }
    }
  }

  /** Introduce this executor; without an agent here, `address` is null. */
  private static Message.Hello hello(PluginContext context, SparkInternals spark, String address) {
    String named = System.getenv("BLAST_HOST");
    String host = named == null ? spark.host() : named;
    String agent = address == null ? null : System.getenv().getOrDefault("BLAST_AGENT", address + ":" + AGENT_PORT);
    return new Message.Hello(context.executorID(), host, agent);
  }

  private static void say(Sealed lines, Message message) throws IOException {
    synchronized (lines) {
      lines.write(message.text());
    }
  }

  private static String setting(PluginContext context, String name, String variable, String otherwise) {
    return context.conf().get("spark.blast." + name, System.getenv().getOrDefault(variable, otherwise));
  }
}
