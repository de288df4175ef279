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
    } catch (RuntimeException error) {
      // The application begins without us, whatever it is.
      LOG.warn("Blast is off, and Spark fetches broadcasts as always", error);
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

  /** First whoever asks, then who is asked; the sender last, as it may take a moment to give the light back. */
  @Override
  public void shutdown() {
    try (SenderProcess asked = sender; Door left = door; Broadcasts ended = broadcasts) {
      LOG.debug("Blast ends: {} {} {}", asked, left, ended);
    } catch (IOException error) {
      LOG.debug("Blast ends", error);
    }
  }

  private Map<String, String> begun(SparkContext spark, SparkConf conf) throws SwitchedOff {
    if (spark.isLocal()) {
      throw new SwitchedOff("there are no executors in local mode");
    }
    String address = conf.get("spark.driver.host");
    String host = conf.get("spark.blast.host", System.getenv().getOrDefault("BLAST_HOST", address));
    PluginSettings settings = PluginSettings.of(all(conf), host);
    SparkInternals internals = SparkInternals.find();
    byte[] key = new byte[KEY_BYTES];
    new SecureRandom().nextBytes(key);
    broadcasts = new Broadcasts(settings, internals::copy, host, event -> internals.publish(spark, event), figures);
    String ours = conf.get("spark.driver.bindAddress", address);
    try {
      door = new Door(InetAddress.getByName(ours), key, broadcasts);
    } catch (IOException error) {
      throw new SwitchedOff("executors cannot connect to " + ours + " (" + error.getMessage() + ")", error);
    }
    try {
      sender = new SenderProcess(settings, broadcasts);
    } catch (IOException error) {
      throw new SwitchedOff(
          "the sender does not start (" + error.getMessage() + "): spark.blast.command names the blast of this host",
          error);
    }
    broadcasts.begin(door::guests, sender);
    internals.watch(broadcasts);
    spark.addSparkListener(new Removals(broadcasts));
    return Map.of(
        ADDRESS, address, PORT, Integer.toString(door.port()), KEY, Base64.getEncoder().encodeToString(key));
  }

  private static Map<String, String> all(SparkConf conf) {
    return Arrays.stream(conf.getAll()).collect(Collectors.toMap(Tuple2::_1, Tuple2::_2));
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
        try {
          watcher.unwanted(Long.parseLong(number));
        } catch (RuntimeException error) {
          LOG.warn("{} is no broadcast of ours", name, error);
        }
      }
    }
  }
}
