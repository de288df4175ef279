package org.blast.hadoop;

import java.io.EOFException;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A file that may be sent, as it was when it was looked at. */
final class Push {
  private static final int PIECE_BYTES = 1 << 20;

  private final FileSystem files;
  private final Path file;
  private final FileStatus status;
  private final URI uri;

  /**
   * Look at it.
   *
   * @throws Refused where it is nothing that may be sent
   * @throws IOException where its file system says so
   */
  Push(Path named, Configuration conf) throws IOException {
    files = named.getFileSystem(conf);
    file = files.makeQualified(named);
    uri = BlastUri.of(file.toUri());
    status = files.getFileStatus(file);
    if (!status.isFile()) {
      throw new Refused(file + " is no file: name each file in it");
    }
    if (!Everyone.mayRead(files, file, status)) {
      throw new Refused(file + " is not for everybody to read, and its copies on the nodes would be:"
          + " give others the right to read it, and to enter the folders on the way, or leave it to Hadoop");
    }
  }

  /** Its name by Blast. */
  URI uri() {
    return uri;
  }

  /** What its copies are called. */
  String name() {
    return CopyName.of(file.toUri(), status);
  }

  /** Bytes in it. */
  long bytes() {
    return status.getLen();
  }

  /**
   * Bring it to these agents.
   *
   * @param to each as {@code blast send --to} takes it
   * @throws Refused where it was changed meanwhile, and then nobody has it; or the configuration is wrong
   * @throws IOException where it cannot be read, or there is no command {@code blast}
   */
  Delivery send(List<String> to, Settings settings) throws IOException {
    if (bytes() == 0) {
      return Delivery.none(to, "there is nothing in it");
    }
    try (FSDataInputStream from = files.open(file); Sending sending = new Sending(settings, to, name(), bytes())) {
      byte[] piece = new byte[(int) Math.min(bytes(), PIECE_BYTES)];
      long left = bytes();
      for (; left > piece.length; left -= piece.length) {
        fill(piece, piece.length, from);
        if (!sending.write(piece, piece.length)) {
          return sending.end();
        }
      }
      fill(piece, (int) left, from);
      refuseChanged();
      // Only with these it is whole: what was changed never has this length at an agent.
      sending.write(piece, (int) left);
      return sending.end();
    }
  }

  private void fill(byte[] piece, int bytes, FSDataInputStream from) throws IOException {
    try {
      from.readFully(piece, 0, bytes);
    } catch (EOFException error) {
      throw changed();
    }
  }

  private void refuseChanged() throws IOException {
    FileStatus now = files.getFileStatus(file);
    if (now.getLen() != status.getLen() || now.getModificationTime() != status.getModificationTime()) {
      throw changed();
    }
  }

  private Refused changed() {
    return new Refused(file + " was changed while it was sent: push it again when it is complete");
  }
}
