package org.blast.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The settings of Blast in the job's configuration.
 *
 * @param command path of {@code blast} on this host
 * @param options options of {@code blast sender}
 * @param folder name of the agents' folder for Spark
 * @param threshold minimum size of a broadcast that Blast transfers, in bytes
 * @param linkRate rate of a host's link in bit/s, which bounds Spark's own fetch; 0 if unset
 * @param hold whether readers wait during a transfer
 */
record PluginSettings(
    String command, List<String> options, String folder, long threshold, double linkRate, boolean hold) {

  private static final String PREFIX = "spark.blast.";
  private static final Pattern RATE = Pattern.compile("[0-9]{1,15}([.][0-9]{1,15})?[kmg]?");
  private static final Pattern SIZE = Pattern.compile("([0-9]{1,15})([kmgt]?)b?");
  private static final String THRESHOLD = "8m";
  private static final Map<String, String> PASSED_ON = Map.ofEntries(
      Map.entry("controller", "--controller"),
      Map.entry("ca", "--ca"),
      Map.entry("cert", "--cert"),
      Map.entry("certKey", "--cert-key"),
      Map.entry("tokenFile", "--token-file"),
      Map.entry("via", "--via"),
      Map.entry("host", "--from"),
      Map.entry("lightAddress", "--optical-address"),
      Map.entry("priority", "--priority"),
      Map.entry("secretFile", "--secret-file"),
      Map.entry("agentCert", "--agent-cert"),
      Map.entry("agentKey", "--agent-key"),
      Map.entry("agentCa", "--agent-ca"));
  private static final Set<String> OTHERS =
      Set.of("command", "folder", "threshold", "linkRate", "hold", "sealed", "executorFolder", "enabled");
  private static final List<String> SECURE = List.of(
      "spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled", "spark.ssl.enabled",
      "spark.ssl.rpc.enabled");

  /**
   * Read and check the settings.
   *
   * @param conf the job's configuration
   * @param host default for the name of this host at the controller
   * @throws PluginDisabled if a setting is invalid, or Blast would send data unprotected that Spark protects
   */
  static PluginSettings of(Map<String, String> conf, String host) throws PluginDisabled {
    if (!flag(conf, "enabled", true)) {
      throw new PluginDisabled("spark.blast.enabled is false");
    }
    checkNames(conf);
    List<String> options = new ArrayList<>();
    PASSED_ON.forEach((name, option) -> {
      if (conf.containsKey(PREFIX + name)) {
        options.addAll(List.of(option, conf.get(PREFIX + name)));
      }
    });
    if (!conf.containsKey(PREFIX + "host")) {
      options.addAll(List.of("--from", host));
    }
    boolean sealed = flag(conf, "sealed", false);
    if (sealed) {
      options.add("--sealed");
    }
    checkProtection(conf, sealed);
    return new PluginSettings(
        conf.getOrDefault(PREFIX + "command", "blast"),
        List.copyOf(options),
        conf.getOrDefault(PREFIX + "folder", "spark"),
        bytes(conf),
        rate(conf),
        flag(conf, "hold", true));
  }

  private static void checkNames(Map<String, String> conf) throws PluginDisabled {
    for (String setting : new TreeSet<>(conf.keySet())) {
      String name = setting.startsWith(PREFIX) ? setting.substring(PREFIX.length()) : "enabled";
      if (!PASSED_ON.containsKey(name) && !OTHERS.contains(name)) {
        throw new PluginDisabled("unknown setting " + setting + ": docs/how-to/spark.md lists the settings");
      }
    }
  }

  /** Check that Blast protects data that Spark encrypts or authenticates. */
  private static void checkProtection(Map<String, String> conf, boolean sealed) throws PluginDisabled {
    boolean tls = conf.containsKey(PREFIX + "agentCert");
    boolean optical = conf.getOrDefault(PREFIX + "via", "auto").equals("optical");
    for (String setting : SECURE) {
      boolean on = conf.getOrDefault(setting, "false").trim().equalsIgnoreCase("true");
      if (on && !(sealed && (tls || optical))) {
        throw new PluginDisabled(setting + " is on, but Blast would send data without protection:"
            + " set spark.blast.sealed=true, and either spark.blast.agentCert, agentKey and agentCa"
            + " or spark.blast.via=optical");
      }
    }
  }

  private static boolean flag(Map<String, String> conf, String name, boolean fallback) throws PluginDisabled {
    String value = conf.getOrDefault(PREFIX + name, String.valueOf(fallback)).toLowerCase(Locale.ROOT);
    if (!value.equals("true") && !value.equals("false")) {
      throw new PluginDisabled(PREFIX + name + " must be true or false, not " + value);
    }
    return value.equals("true");
  }

  private static long bytes(Map<String, String> conf) throws PluginDisabled {
    String text = conf.getOrDefault(PREFIX + "threshold", THRESHOLD).trim().toLowerCase(Locale.ROOT);
    Matcher size = SIZE.matcher(text);
    if (!size.matches()) {
      throw new PluginDisabled(PREFIX + "threshold must be a size, for example 16m, not " + text);
    }
    int unit = size.group(2).isEmpty() ? 0 : 1 + "kmgt".indexOf(size.group(2));
    return (long) Math.min(Long.parseLong(size.group(1)) * Math.pow(1024, unit), Long.MAX_VALUE);
  }

  private static double rate(Map<String, String> conf) throws PluginDisabled {
    String text = conf.getOrDefault(PREFIX + "linkRate", "0").trim().toLowerCase(Locale.ROOT);
    if (!RATE.matcher(text).matches()) {
      throw new PluginDisabled(PREFIX + "linkRate must be a rate in bit/s, for example 10g, not " + text);
    }
    int unit = "kmg".indexOf(text.charAt(text.length() - 1));
    return Double.parseDouble(unit < 0 ? text : text.substring(0, text.length() - 1)) * Math.pow(1000, unit + 1.0);
  }
}
