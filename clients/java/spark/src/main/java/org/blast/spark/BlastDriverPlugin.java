package org.blast.spark;

import java.io.IOException;
import java.net.InetAddress;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerBlockUpdated;
import org.apache.spark.storage.BlockUpdatedInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/** The plugin in the driver. It connects the components, and disables itself if one cannot work. */
final class BlastDriverPlugin implements DriverPlugin {
  static final String ADDRESS = "address";
  static final String PORT = "server";
  static final String KEY = "secret";

  private static final Logger LOG = LoggerFactory.getLogger(BlastDriverPlugin.class);
  private static final int KEY_BYTES = 32;

  private final PluginMetrics metrics = new PluginMetrics();
  private Broadcasts broadcasts;
  private SenderProcess sender;
  private ExecutorServer server;

  @Override
  public Map<String, String> init(SparkContext spark, PluginContext context) {
    try {
      return start(spark, context.conf());
    } catch (PluginDisabled disabled) {
      LOG.warn("Blast is disabled in the driver: {}; Spark fetches broadcasts without Blast", disabled.getMessage());
      shutdown();
      return Map.of();
    } catch (RuntimeException error) {
      // No error of the plugin may keep the application from starting.
      LOG.warn("Blast is disabled in the driver after an error; Spark fetches broadcasts without Blast", error);
      shutdown();
      return Map.of();
    }
  }

  @Override
  public void registerMetrics(String application, PluginContext context) {
    context.metricRegistry().registerAll(metrics.registry());
    if (broadcasts != null) {
      broadcasts.setApplication(application);
    }
  }

  /**
   * Close the broadcasts before the components that they use; the sender last, since it first withdraws its requests.
   */
  @Override
  public void shutdown() {
    try (SenderProcess files = sender; ExecutorServer executors = server; Broadcasts transfers = broadcasts) {
      LOG.debug("closing {} {} {}", files, executors, transfers);
    } catch (IOException error) {
      LOG.debug("closing", error);
    }
  }

  private Map<String, String> start(SparkContext spark, SparkConf conf) throws PluginDisabled {
    if (spark.isLocal()) {
      throw new PluginDisabled("local mode has no executors");
    }
    String address = conf.get("spark.driver.host");
    String host = conf.get("spark.blast.host", System.getenv().getOrDefault("BLAST_HOST", address));
    PluginSettings settings = PluginSettings.of(all(conf), host);
    SparkInternals internals = SparkInternals.find();
    byte[] key = new byte[KEY_BYTES];
    new SecureRandom().nextBytes(key);
    broadcasts = new Broadcasts(settings, internals::copy, host, event -> internals.publish(spark, event), metrics);
    String bindAddress = conf.get("spark.driver.bindAddress", address);
    try {
      server = new ExecutorServer(InetAddress.getByName(bindAddress), key, broadcasts);
    } catch (IOException error) {
      throw new PluginDisabled("cannot listen on " + bindAddress + " (" + error.getMessage()
          + "): check spark.driver.bindAddress", error);
    }
    try {
      sender = new SenderProcess(settings, broadcasts);
    } catch (IOException error) {
      throw new PluginDisabled(
          "cannot start the sender (" + error.getMessage() + "): set spark.blast.command to the path of blast on this "
              + "host",
          error);
    }
    broadcasts.begin(server::peers, sender);
    internals.watch(broadcasts);
    spark.addSparkListener(new Removals(broadcasts));
    return Map.of(
        ADDRESS, address, PORT, Integer.toString(server.port()), KEY, Base64.getEncoder().encodeToString(key));
  }

  private static Map<String, String> all(SparkConf conf) {
    return Arrays.stream(conf.getAll()).collect(Collectors.toMap(Tuple2::_1, Tuple2::_2));
  }

  /** Detects `unpersist` and `destroy` from the blocks that executors remove. */
  private static final class Removals extends SparkListener {
    private static final String PREFIX = "broadcast_";
    private final SparkInternals.BroadcastListener listener;

    Removals(SparkInternals.BroadcastListener listener) {
      this.listener = listener;
    }

    @Override
    public void onBlockUpdated(SparkListenerBlockUpdated updated) {
      BlockUpdatedInfo info = updated.blockUpdatedInfo();
      String name = info.blockId().name();
      if (name.startsWith(PREFIX) && !info.storageLevel().isValid()) {
        String number = name.substring(PREFIX.length()).split("_", 2)[0];
        try {
          listener.removed(Long.parseLong(number));
        } catch (RuntimeException error) {
          LOG.warn("cannot parse the block name {}", name, error);
        }
      }
    }
  }
}
