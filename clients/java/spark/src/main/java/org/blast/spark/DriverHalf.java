package org.blast.spark;

import java.io.IOException;
import java.net.InetAddress;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerBlockUpdated;
import org.apache.spark.storage.BlockUpdatedInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The plugin in the driver: puts the parts together, and switches itself off where one cannot work. */
final class DriverHalf implements DriverPlugin {
  static final String ADDRESS = "address";
  static final String PORT = "door";
  static final String KEY = "secret";

  private static final Logger LOG = LoggerFactory.getLogger(DriverHalf.class);
  private static final int KEY_BYTES = 32;

  private final Figures figures = new Figures();
  private Broadcasts broadcasts;
  private SenderProcess sender;
  private Door door;

  @Override
  public Map<String, String> init(SparkContext spark, PluginContext context) {
    try {
      return begun(spark, context.conf());
    } catch (SwitchedOff off) {
      LOG.warn("Blast is off, and Spark fetches broadcasts as always: {}", off.getMessage());
      shutdown();
      return Map.of();
    }
  }

  @Override
  public void registerMetrics(String application, PluginContext context) {
    context.metricRegistry().registerAll(figures.registry());
    if (broadcasts != null) {
      broadcasts.name(application);
    }
  }

  @Override
  public void shutdown() {
    try {
      if (broadcasts != null) {
        broadcasts.close();
      }
      if (sender != null) {
        sender.close();
      }
      if (door != null) {
        door.close();
      }
    } catch (IOException error) {
      LOG.debug("Blast ends", error);
    }
  }

  private Map<String, String> begun(SparkContext spark, SparkConf conf) throws SwitchedOff {
    if (spark.isLocal()) {
      throw new SwitchedOff("there are no executors in local mode");
    }
    String host = conf.get("spark.blast.host", System.getenv().getOrDefault("BLAST_HOST", conf.get("spark.driver.host")));
    PluginSettings settings = PluginSettings.of(conf, host);
    SparkInternals internals = SparkInternals.find();
    byte[] key = new byte[KEY_BYTES];
    new SecureRandom().nextBytes(key);
    broadcasts = new Broadcasts(settings, internals, host, event -> internals.publish(spark, event), figures);
    String address = conf.get("spark.driver.host");
    try {
      door = new Door(InetAddress.getByName(conf.get("spark.driver.bindAddress", address)), key, broadcasts);
      sender = new SenderProcess(settings, broadcasts);
    } catch (IOException error) {
      throw new SwitchedOff("it cannot begin (" + error.getMessage() + "); spark.blast.command names the command blast of"
          + " this host", error);
    }
    broadcasts.begin(door, sender);
    internals.watch(broadcasts);
    spark.addSparkListener(new Removals(broadcasts));
    return Map.of(
        ADDRESS, address, PORT, Integer.toString(door.port()), KEY, Base64.getEncoder().encodeToString(key));
  }

  /** `unpersist` and `destroy` are seen by what goes from the executors. */
  private static final class Removals extends SparkListener {
    private static final String PREFIX = "broadcast_";
    private final SparkInternals.Watcher watcher;

    Removals(SparkInternals.Watcher watcher) {
      this.watcher = watcher;
    }

    @Override
    public void onBlockUpdated(SparkListenerBlockUpdated updated) {
      BlockUpdatedInfo info = updated.blockUpdatedInfo();
      String name = info.blockId().name();
      if (name.startsWith(PREFIX) && !info.storageLevel().isValid()) {
        String number = name.substring(PREFIX.length()).split("_", 2)[0];
        watcher.unwanted(Long.parseLong(number));
      }
    }
  }
}
