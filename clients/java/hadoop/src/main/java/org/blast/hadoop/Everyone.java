package org.blast.hadoop;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;

/** Whether everybody may read a file: then a copy that lies open on a node's disk tells nobody anything new. */
final class Everyone {
  private Everyone() {}

  /** By the permission bits of the file and of all folders on the way; what is encrypted is not for everybody. */
  static boolean mayRead(FileSystem files, Path file, FileStatus status) throws IOException {
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
