package org.blast.hadoop;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** The copies of a file that have been sent. */
final class Copies {
  private Copies() {}

  /**
   * What they are called.
   *
   * @param text the {@code blast:} URI of a file that is as it was when it was sent, or the name itself
   * @throws Refused where it is neither
   * @throws IOException where the file is not there any more
   */
  static String name(String text, Configuration conf) throws IOException {
    if (CopyName.isOne(text)) {
      return text;
    }
    Path original = new Path(BlastUri.originalOf(new Path(URI.create(text)).toUri()));
    FileStatus status = original.getFileSystem(conf).getFileStatus(original);
    return CopyName.of(original.toUri(), status);
  }

  /** Free their space: an empty file takes their name, which nobody takes for a copy. */
  static Delivery remove(String name, List<String> agents, Settings settings) throws IOException {
    try (Sending nothing = new Sending(settings, agents, name, 0)) {
      return nothing.end();
    }
  }
}
