package org.blast.hadoop;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;

/** The check that all users may read a file, so that a readable copy on a node's disk discloses nothing. */
final class WorldReadable {
  private WorldReadable() {}

  /**
   * Check the permission bits of the file and its parent directories. Encrypted files are not readable by all users.
   */
  static boolean check(FileSystem files, Path file, FileStatus status) throws IOException {
    if (status.isEncrypted() || !others(status).implies(FsAction.READ)) {
      return false;
    }
    for (Path folder = file.getParent(); folder != null; folder = folder.getParent()) {
      if (!others(files.getFileStatus(folder)).implies(FsAction.EXECUTE)) {
        return false;
      }
    }
    return true;
  }

  private static FsAction others(FileStatus status) {
    return status.getPermission().getOtherAction();
  }
}
