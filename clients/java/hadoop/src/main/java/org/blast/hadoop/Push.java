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

/** A file to send, with its status at the start. */
final class Push {
  private static final int PIECE_BYTES = 1 << 20;

  private final FileSystem files;
  private final Path file;
  private final FileStatus status;
  private final URI uri;

  /**
   * Check the file.
   *
   * @throws Refused if it must not be sent
   * @throws IOException if its status cannot be read
   */
  Push(Path named, Configuration conf) throws IOException {
    files = named.getFileSystem(conf);
    file = files.makeQualified(named);
    uri = BlastUri.of(file.toUri());
    status = files.getFileStatus(file);
    if (!status.isFile()) {
      throw new Refused(file + " is not a file: pass each file in it");
    }
    if (!WorldReadable.check(files, file, status)) {
      throw new Refused(file + " is not readable by all users, but its copies on the nodes would be: grant all "
          + "users access to the file and its parent directories, or use Hadoop's distributed cache without Blast");
    }
  }

  /** Return the {@code blast:} URI. */
  URI uri() {
    return uri;
  }

  /** Return the name of its copies. */
  String name() {
    return CopyName.of(file.toUri(), status);
  }

  /** Return its size in bytes. */
  long bytes() {
    return status.getLen();
  }

  /**
   * Send the file to agents.
   *
   * @param to agents in the format of {@code blast send --to}
   * @throws Refused if the file changed during the transfer, and no agent has it; or the configuration is wrong
   * @throws IOException if the file cannot be read, or the command {@code blast} does not exist
   */
  Delivery send(List<String> to, Settings settings) throws IOException {
    if (bytes() == 0) {
      return Delivery.none(to, "the file is empty");
    }
    try (FSDataInputStream from = files.open(file); SendProcess sending = new SendProcess(settings, to, name(),
        bytes())) {
      byte[] piece = new byte[(int) Math.min(bytes(), PIECE_BYTES)];
      long left = bytes();
      for (; left > piece.length; left -= piece.length) {
        fill(piece, piece.length, from);
        if (!sending.write(piece, piece.length)) {
          return sending.end();
        }
      }
      fill(piece, (int) left, from);
      checkUnchanged();
      // The last bytes follow only after this check, so that no agent completes a changed file.
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

  private void checkUnchanged() throws IOException {
    FileStatus now = files.getFileStatus(file);
    if (now.getLen() != status.getLen() || now.getModificationTime() != status.getModificationTime()) {
      throw changed();
    }
  }

  private Refused changed() {
    return new Refused(file + " changed during the transfer: push it again once it is complete");
  }
}
