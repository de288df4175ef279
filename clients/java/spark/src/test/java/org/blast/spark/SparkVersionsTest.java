package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;

/**
 * Tests that each supported version of Spark has the required members, and that the message names a missing one. Maven
 * copies the jars. Spark 4.3 exists with PySpark only; tests/integration runs it.
 */
class SparkVersionsTest {
  private static final Path VERSIONS = Path.of("target", "spark-versions");
  private static final String NEWEST = "4.2.0";

  /** A class loader of one version of Spark. It can replace a name in a class by another one of the same length. */
  private static final class Version extends URLClassLoader {
    private final String type;
    private final String name;
    private final String other;

    Version(String version, String type, String name, String other) throws IOException {
      super(jars(version), ClassLoader.getPlatformClassLoader());
      this.type = type;
      this.name = name;
      this.other = other;
    }

    private static URL[] jars(String version) throws IOException {
      List<URL> jars = new ArrayList<>();
      for (String folder : List.of(version, "others")) {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(VERSIONS.resolve(folder), "*.jar")) {
          for (Path file : files) {
            jars.add(file.toUri().toURL());
          }
        }
      }
      jars.add(Logger.class.getProtectionDomain().getCodeSource().getLocation());
      return jars.toArray(new URL[0]);
    }

    @Override
    protected Class<?> findClass(String className) throws ClassNotFoundException {
      if (!className.equals(type)) {
        return super.findClass(className);
      }
      try (InputStream in = getResourceAsStream(className.replace('.', '/') + ".class")) {
        String code = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
        assertTrue(code.contains(name), name);
        byte[] changed = code.replace(name, other).getBytes(StandardCharsets.ISO_8859_1);
        return defineClass(className, changed, 0, changed.length);
      } catch (IOException error) {
        throw new ClassNotFoundException(className, error);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"3.3.4", "3.5.9", "4.0.1", "4.1.3", NEWEST})
  void supportedVersionLinks(String version) throws Exception {
    try (Version spark = new Version(version, null, null, null)) {
      assertNotSame(SparkContext.class, spark.loadClass(SparkContext.class.getName()));
      SparkInternals.in(spark);
    }
  }

  @Test
  void oldSparkIsRejected() throws Exception {
    try (Version spark = new Version("2.4.8", null, null, null)) {
      checkMessage(refused(spark), "org.apache.spark.util.KeyLock");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "storage.BlockManager, putBytes", "storage.BlockManager, getLocalBytes", "storage.BlockManager, getStatus",
    "broadcast.TorrentBroadcast, numBlocks", "broadcast.TorrentBroadcast, blockSize",
    "broadcast.TorrentBroadcast$, torrentBroadcastLock", "broadcast.BroadcastManager, broadcastFactory",
    "storage.BlockManagerMaster, getLocations", "network.BlockTransferService, fetchBlockSync",
    "util.KeyLock, withLock", "SparkEnv, blockManager", "SparkContext, listenerBus", "scheduler.LiveListenerBus, post",
  })
  void missingMemberIsNamed(String type, String name) throws Exception {
    String other = name.substring(0, name.length() - 1) + "_";
    try (Version spark = new Version(NEWEST, "org.apache.spark." + type, name, other)) {
      checkMessage(refused(spark), name);
    }
  }

  @Test
  void changedParametersAreRejected() throws Exception {
    String type = "org.apache.spark.storage.BlockManager";
    String level = "Lorg/apache/spark/storage/StorageLevel;ZLscala/reflect/ClassTag;)Z";
    try (Version spark = new Version(NEWEST, type, level, level.replace("ZL", "IL"))) {
      checkMessage(refused(spark), "putBytes");
    }
  }

  @Test
  void missingSparkIsRejected() {
    checkMessage(refused(ClassLoader.getPlatformClassLoader()), "org.apache.spark.SparkEnv");
  }

  private static String refused(ClassLoader loader) {
    return assertThrows(PluginDisabled.class, () -> SparkInternals.in(loader)).getMessage();
  }

  private static void checkMessage(String message, String missing) {
    assertTrue(message.startsWith("this version of Spark is not supported ("), message);
    assertTrue(message.contains(missing), message);
    assertEquals(1, message.lines().count(), message);
  }
}
