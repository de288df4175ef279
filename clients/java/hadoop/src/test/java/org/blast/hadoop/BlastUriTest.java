package org.blast.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.yarn.api.records.URL;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that URIs survive their way from the job's configuration to a NodeManager. */
class BlastUriTest {
  @ParameterizedTest
  @CsvSource({
    "hdfs://namenode:8020/models/w.bin, blast://hdfs@namenode:8020/models/w.bin",
    "hdfs://nameservice1/models/w.bin, blast://hdfs@nameservice1/models/w.bin",
    "hdfs://[::1]:8020/w, blast://hdfs@[::1]:8020/w",
    "s3a://bucket.of-mine/w, blast://s3a@bucket.of-mine/w",
    "abfs://box@account.example.net/w, blast://abfs:box@account.example.net/w",
    "file:/srv/w.bin, blast://file/srv/w.bin",
    "file:///srv/w.bin, blast://file/srv/w.bin",
    "viewfs:/w, blast://viewfs/w",
  })
  void uriEncodesTheOriginal(String original, String blast) throws Refused {
    URI encoded = BlastUri.of(URI.create(original));
    assertEquals(blast, encoded.toString());
    assertEquals(new Path(original), new Path(BlastUri.originalOf(encoded)));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "/w", "/with a blank", "/100%", "/%41", "/a#b", "/a?b", "/a,b", "/a+b", "/ä/日本", "/a=b&c;d", "/a@b", "/a'b\"c"})
  void uriSurvivesTheTransferToANodeManager(String path) throws Exception {
    URI original = new Path("hdfs", "namenode:8020", path).toUri();
    URI listed = URI.create(BlastUri.encode(BlastUri.of(original)) + "#alias");
    assertEquals(-1, listed.toString().indexOf(','));
    assertEquals("alias", listed.getFragment());
    Path there = URL.fromURI(new Path(listed).toUri()).toPath();
    assertEquals(original, BlastUri.originalOf(there.toUri()));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "blast:///w", "blast:/w", "blast://:8020/w", "blast://namenode:8020/w", "blast://under_score/w", "hdfs://h/w"})
  void uriWithoutAFileSystemIsRejected(String blast) {
    Refused error = assertThrows(Refused.class, () -> BlastUri.originalOf(URI.create(blast)));
    assertTrue(error.getMessage().contains("blast://hdfs@namenode:8020/"), error.getMessage());
  }

  @ParameterizedTest
  @ValueSource(strings = {"hdfs://under_score/w", "s3a://a%41b/w", "abfs://%41@h/w", "blast://file/w", "/w"})
  void originalThatYarnCannotEncodeIsRejected(String original) {
    assertThrows(Refused.class, () -> BlastUri.of(URI.create(original)));
  }

  @Test
  void aliasIsNotPartOfTheOriginal() throws Refused {
    assertEquals(URI.create("file:/w"), BlastUri.originalOf(URI.create("blast://file/w#alias")));
  }
}
