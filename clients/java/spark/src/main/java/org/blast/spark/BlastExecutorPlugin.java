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
 * The plugin in an executor. It connects to the driver's plugin, and takes the broadcasts that arrive at this host.
 * Without an agent's directory, it fetches them from executors on other hosts.
 */
final class BlastExecutorPlugin implements ExecutorPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(BlastExecutorPlugin.class);
  private static final int CONNECT_MILLIS = 5_000;
  private static final int WELCOME_MILLIS = 1_000;
  private static final String AGENT_PORT = "9095";
  private static final String FOLDER = "/var/lib/blast-agent/incoming";

  private final CountDownLatch welcomed = new CountDownLatch(1);
  private volatile boolean ended;
  private volatile Socket socket;

  @Override
  public void init(PluginContext context, Map<String, String> extra) {
    if (!extra.containsKey(BlastDriverPlugin.KEY) || context.executorID().equals("driver")) {
      return;
    }
    Daemon.start("blast", () -> listen(context, extra));
    // Broadcasts that are older than this executor must be announced before its first tasks read them.
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
      LOG.debug("closing {}", closed);
    } catch (IOException error) {
      LOG.debug("closing", error);
    }
  }

  private void listen(PluginContext context, Map<String, String> extra) {
    try {
      SparkInternals spark = SparkInternals.find();
      Path base = Path.of(setting(context, "executorFolder", "BLAST_FOLDER", FOLDER));
      // Always closed at the end: the agent removes the directory once no executor claims it.
      try (HostFolder folder = folder(base, context.conf().get("spark.app.id"))) {
        exchangeMessages(context, extra, spark, folder);
      }
    } catch (PluginDisabled disabled) {
      LOG.warn("Blast is disabled in this executor: {}; Spark fetches broadcasts without Blast", disabled.getMessage());
    } catch (IOException | RuntimeException error) {
      if (!ended) {
        LOG.warn("Blast has stopped in this executor: {}; Spark fetches broadcasts without Blast", error.toString());
      }
    } finally {
      welcomed.countDown();
    }
  }

  /** Return the application's directory; null if this host has no agent for it. */
  private static HostFolder folder(Path base, String application) {
    try {
      return new HostFolder(base, application);
    } catch (PluginDisabled noAgent) {
      LOG.warn("this executor fetches broadcasts from other executors: {}", noAgent.getMessage());
      return null;
    }
  }

  private void exchangeMessages(PluginContext context, Map<String, String> extra, SparkInternals spark,
      HostFolder folder)
      throws IOException {
    try (Socket connection = new Socket()) {
      socket = connection;
      if (ended) {
        return;
      }
      int port = Integer.parseInt(extra.get(BlastDriverPlugin.PORT));
      connection.connect(new InetSocketAddress(extra.get(BlastDriverPlugin.ADDRESS), port), CONNECT_MILLIS);
      connection.setTcpNoDelay(true);
      connection.setKeepAlive(true);
      byte[] nonce = new byte[AuthenticatedLines.NONCE_BYTES];
      new SecureRandom().nextBytes(nonce);
      AuthenticatedLines lines = new AuthenticatedLines(
          Base64.getDecoder().decode(extra.get(BlastDriverPlugin.KEY)),
          new BufferedInputStream(connection.getInputStream()),
          new BufferedOutputStream(connection.getOutputStream()),
          nonce,
          false);
      String address = folder == null ? null : connection.getLocalAddress().getHostAddress();
      send(lines, Message.of(hello(context, spark, address)));
      try (IncomingBroadcasts incoming = new IncomingBroadcasts(spark, folder, message -> send(lines, message),
          welcomed)) {
        for (String text = lines.read(); text != null; text = lines.read()) {
          incoming.handle(Message.read(text));
        }
      }
    }
  }

  /** Return the first message of this executor; `address` is null if this host has no agent. */
  private static Message.Hello hello(PluginContext context, SparkInternals spark, String address) {
    String named = System.getenv("BLAST_HOST");
    String host = named == null ? spark.host() : named;
    String agent = address == null ? null : System.getenv().getOrDefault("BLAST_AGENT", address + ":" + AGENT_PORT);
    return new Message.Hello(context.executorID(), host, agent);
  }

  private static void send(AuthenticatedLines lines, Message message) throws IOException {
    synchronized (lines) {
      lines.write(message.text());
    }
  }

  private static String setting(PluginContext context, String name, String variable, String otherwise) {
    return context.conf().get("spark.blast." + name, System.getenv().getOrDefault(variable, otherwise));
  }
}
