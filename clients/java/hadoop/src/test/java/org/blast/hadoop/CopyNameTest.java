package org.blast.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that sender and NodeManager compute the same name, and that names of different files differ. */
class CopyNameTest {
  @Test
  void nameMatchesTheFirstVersion() {
    // sha256sum of "5\n6\nhdfs\nnamenode:8020\n/models/w.bin": nodes may run an older version than the sender.
    assertEquals("a376360745e9d5499e892bfb7d9dfc64b79047f10f3d7e37110a19be98dc69d3",
        name("hdfs://namenode:8020/models/w.bin", 5, 6));
  }

  @Test
  void differentFilesHaveDifferentNames() {
    Set<String> names = new HashSet<>();
    String[] files = {"hdfs://a/w", "hdfs://a:1/w", "s3a://a/w", "hdfs://a/x", "file:/w", "hdfs://a/w%0A1"};
    for (String file : files) {
      for (long length : new long[] {1, 11, 12}) {
        for (long modified : new long[] {1, 11, 2}) {
          names.add(name(file, length, modified));
        }
      }
    }
    assertEquals(files.length * 9, names.size());
    assertTrue(names.stream().allMatch(CopyName::isName));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "blast://file/w", "0123", "../../../../etc/passwd"})
  void isNameRejectsOtherText(String text) {
    assertFalse(CopyName.isName(text));
  }

  private static String name(String original, long length, long modified) {
    return CopyName.of(URI.create(original), new FileStatus(length, false, 1, 1, modified, new Path(original)));
  }
}
