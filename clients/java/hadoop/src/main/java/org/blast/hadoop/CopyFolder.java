package org.blast.hadoop;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;

/**
 * The directory of this host's agent. The agent verifies every byte of a file before it gives the file its name. Files
 * are trusted only if no other user can have created them.
 */
final class CopyFolder {
  private final Path folder;
  private final String user;

  /**
   * Use a directory, which may be missing.
   *
   * @param folder its path
   * @param user user of the agent
   */
  CopyFolder(Path folder, String user) {
    this.folder = folder;
    this.user = user;
  }

  /**
   * Open the copy with this name.
   *
   * @param length its expected size in bytes
   * @throws CopyUnavailable if the copy is missing or not trusted
   */
  FileChannel open(String name, long length) throws CopyUnavailable {
    Path path = folder.resolve(name);
    try {
      PosixFileAttributes found = trusted(folder);
      if (!found.isDirectory()) {
        throw new CopyUnavailable(folder + " is not a directory");
      }
      if (!trusted(path).isRegularFile()) {
        throw new CopyUnavailable(path + " is not a regular file");
      }
      FileChannel copy = FileChannel.open(path, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
      if (copy.size() != length) {
        copy.close();
        throw new CopyUnavailable(path + " differs in length from the original");
      }
      return copy;
    } catch (NoSuchFileException error) {
      throw new CopyUnavailable(error.getMessage() + " does not exist");
    } catch (CopyUnavailable reason) {
      throw reason;
    } catch (IOException error) {
      throw new CopyUnavailable(error + ": set the agent's file_mode so that this user can read");
    }
  }

  /** Return the attributes of a file, without following links. Throws CopyUnavailable if other users can change it. */
  private PosixFileAttributes trusted(Path path) throws IOException {
    PosixFileAttributes found = Files.readAttributes(path, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    if (found.isSymbolicLink()) {
      throw new CopyUnavailable(path + " is a symbolic link");
    }
    if (!found.owner().getName().equals(user)) {
      throw new CopyUnavailable(path + " belongs to " + found.owner() + ", not to " + user
          + ": set blast.agent.user to the user of the agent");
    }
    if (found.permissions().contains(PosixFilePermission.GROUP_WRITE)
        || found.permissions().contains(PosixFilePermission.OTHERS_WRITE)) {
      throw new CopyUnavailable("users other than " + user + " can write to " + path);
    }
    return found;
  }
}
