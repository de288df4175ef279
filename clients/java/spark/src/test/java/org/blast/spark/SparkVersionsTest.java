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
 * What we need of Spark's inside is there in each version that we say we work with, and where it is not, the sentence
 * names it. The jars are those that Maven put beside us. 4.3 comes with PySpark only, and is run for real elsewhere.
 */
class SparkVersionsTest {
  private static final Path VERSIONS = Path.of("target", "spark-versions");
  private static final String NEWEST = "4.2.0";

  /** One version of Spark, and none of what we are compiled with; one name in one class may be another, as long. */
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
    protected Class<?> findClass(String wanted) throws ClassNotFoundException {
      if (!wanted.equals(type)) {
        return super.findClass(wanted);
      }
      try (InputStream in = getResourceAsStream(wanted.replace('.', '/') + ".class")) {
        String code = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
        assertTrue(code.contains(name), name);
        byte[] changed = code.replace(name, other).getBytes(StandardCharsets.ISO_8859_1);
        return defineClass(wanted, changed, 0, changed.length);
      } catch (IOException error) {
        throw new ClassNotFoundException(wanted, error);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"3.3.4", "3.5.9", "4.0.1", "4.1.3", NEWEST})
  void itLinks(String version) throws Exception {
    try (Version spark = new Version(version, null, null, null)) {
      assertNotSame(SparkContext.class, spark.loadClass(SparkContext.class.getName()));
      SparkInternals.in(spark);
    }
  }

  @Test
  void anOldSparkIsRefused() throws Exception {
    try (Version spark = new Version("2.4.8", null, null, null)) {
      checkSentence(refused(spark), "org.apache.spark.util.KeyLock");
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
  void whatIsMissingIsNamed(String type, String name) throws Exception {
    String other = name.substring(0, name.length() - 1) + "_";
    try (Version spark = new Version(NEWEST, "org.apache.spark." + type, name, other)) {
      checkSentence(refused(spark), name);
    }
  }

  @Test
  void otherParametersAreNoReasonToTryIt() throws Exception {
    String type = "org.apache.spark.storage.BlockManager";
    String level = "Lorg/apache/spark/storage/StorageLevel;ZLscala/reflect/ClassTag;)Z";
    try (Version spark = new Version(NEWEST, type, level, level.replace("ZL", "IL"))) {
      checkSentence(refused(spark), "putBytes");
    }
  }

  @Test
  void noSparkAtAllIsRefused() {
    checkSentence(refused(ClassLoader.getPlatformClassLoader()), "org.apache.spark.SparkEnv");
  }

  private static String refused(ClassLoader loader) {
    return assertThrows(SwitchedOff.class, () -> SparkInternals.in(loader)).getMessage();
  }

  private static void checkSentence(String sentence, String missing) {
    assertTrue(sentence.startsWith("this version of Spark is built in another way ("), sentence);
    assertTrue(sentence.contains(missing), sentence);
    assertEquals(1, sentence.lines().count(), sentence);
  }
}
