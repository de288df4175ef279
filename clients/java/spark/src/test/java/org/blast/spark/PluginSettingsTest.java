package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that each setting takes effect, and that an invalid one disables the plugin with a message. */
class PluginSettingsTest {
  @Test
  void settingsHaveDefaults() throws PluginDisabled {
    PluginSettings settings = PluginSettings.of(Map.of("spark.app.name", "x"), "h1");
    assertEquals(
        new PluginSettings("blast", List.of("--from", "h1"), "spark", 8 << 20, 0, true), settings);
  }

  @ParameterizedTest
  @CsvSource({
    "controller, --controller", "ca, --ca", "cert, --cert", "certKey, --cert-key", "tokenFile, --token-file",
    "via, --via", "lightAddress, --optical-address", "priority, --priority", "secretFile, --secret-file",
    "agentCert, --agent-cert", "agentKey, --agent-key", "agentCa, --agent-ca",
  })
  void senderSettingsArePassedAsOptions(String name, String option) throws PluginDisabled {
    assertEquals(List.of(option, "a b", "--from", "h1"), with(name, "a b").options());
  }

  @Test
  void hostSettingReplacesTheDriverHost() throws PluginDisabled {
    assertEquals(List.of("--from", "h9"), with("host", "h9").options());
  }

  @Test
  void pluginSettingsTakeEffect() throws PluginDisabled {
    assertEquals("/opt/blast", with("command", "/opt/blast").command());
    assertEquals("jobs", with("folder", "jobs").folder());
    assertFalse(with("hold", "False").hold());
    assertTrue(with("sealed", "true").options().contains("--sealed"));
    assertEquals(with("enabled", "true"), with("executorFolder", "/x"));
    assertEquals("spark.blast.enabled is false", off("enabled", "false"));
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0", "1, 1", "16m, 16777216", "16MB, 16777216", "3k, 3072", "2g, 2147483648", "1t, 1099511627776", "9b, 9",
    "999999999999999t, 9223372036854775807",
  })
  void thresholdIsParsedAsASize(String text, long bytes) throws PluginDisabled {
    assertEquals(bytes, with("threshold", text).threshold());
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1000, 1e3", "10k, 1e4", "100m, 1e8", "10g, 1e10", "2.5G, 2.5e9"})
  void linkRateIsParsedInBits(String text, double rate) throws PluginDisabled {
    assertEquals(rate, with("linkRate", text).linkRate());
  }

  @ParameterizedTest
  @CsvSource({
    "threshold, ''", "threshold, x", "threshold, -1", "threshold, 1.5m", "threshold, m", "threshold, 1e3",
    "threshold, 9999999999999999", "linkRate, ''", "linkRate, g", "linkRate, fast", "linkRate, -1g", "linkRate, NaN",
    "linkRate, Infinity", "linkRate, 1e9", "linkRate, 1f", "linkRate, 1gg", "hold, yes", "hold, ''", "sealed, 1",
    "enabled, no",
  })
  void invalidValueIsReportedWithItsName(String name, String value) {
    String reason = off(name, value);
    assertTrue(reason.startsWith("spark.blast." + name + " must be "), reason);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "treshold", "Hold", "secret", "agentca", "driver.host"})
  void unknownSettingIsRejected(String name) {
    assertTrue(off(name, "x").startsWith("unknown setting spark.blast." + name + ": "));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled", "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
  })
  void protectedSparkRequiresSealedTransfers(String protection) throws PluginDisabled {
    Map<String, String> conf = new HashMap<>(Map.of(protection, "TRUE"));
    assertTrue(refused(conf).startsWith(protection + " is on"));
    conf.put("spark.blast.agentCert", "c");
    assertTrue(refused(conf).startsWith(protection + " is on"));
    conf.put("spark.blast.sealed", "true");
    assertTrue(PluginSettings.of(conf, "h1").options().contains("--sealed"));
    conf.remove("spark.blast.agentCert");
    assertTrue(refused(conf).startsWith(protection + " is on"));
    conf.put("spark.blast.via", "pipeline");
    assertTrue(refused(conf).startsWith(protection + " is on"));
    conf.put("spark.blast.via", "optical");
    PluginSettings.of(conf, "h1");
    conf.remove("spark.blast.sealed");
    assertTrue(refused(conf).startsWith(protection + " is on"));
    conf.put(protection, "false");
    PluginSettings.of(conf, "h1");
  }

  private static PluginSettings with(String name, String value) throws PluginDisabled {
    return PluginSettings.of(Map.of("spark.blast." + name, value), "h1");
  }

  private static String off(String name, String value) {
    return refused(Map.of("spark.blast." + name, value));
  }

  private static String refused(Map<String, String> conf) {
    return assertThrows(PluginDisabled.class, () -> PluginSettings.of(conf, "h1")).getMessage();
  }
}
