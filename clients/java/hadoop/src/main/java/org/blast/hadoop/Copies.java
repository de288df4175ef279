package org.blast.hadoop;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** The copies of a file on the nodes. */
final class Copies {
  private Copies() {}

  /**
   * Return the name of the copies.
   *
   * @param text the {@code blast:} URI of a file that is unchanged since its push, or the name itself
   * @throws Refused if the text is neither
   * @throws IOException if the file does not exist
   */
  static String name(String text, Configuration conf) throws IOException {
    if (CopyName.isName(text)) {
      return text;
    }
    Path original = new Path(BlastUri.originalOf(new Path(URI.create(text)).toUri()));
    FileStatus status = original.getFileSystem(conf).getFileStatus(original);
    return CopyName.of(original.toUri(), status);
  }

  /** Replace the copies by empty files, which the file system ignores. */
  static Delivery remove(String name, List<String> agents, Settings settings) throws IOException {
    try (SendProcess empty = new SendProcess(settings, agents, name, 0)) {
      return empty.end();
    }
  }
}
