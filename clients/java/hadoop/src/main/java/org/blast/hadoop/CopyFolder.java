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
 * The folder of this host's agent. What is in it is believed only because nobody but the agent's user can have put it
 * there: the agent has checked every byte before it gave the file its name.
 */
final class CopyFolder {
  private final Path folder;
  private final String user;

  /**
   * One that need not be there.
   *
   * @param folder its path
   * @param user whom the agent runs as
   */
  CopyFolder(Path folder, String user) {
    this.folder = folder;
    this.user = user;
  }

  /**
   * The copy of this name, open.
   *
   * @param length how many bytes it must have
   * @throws NoCopy where there is none, or one that is not to be trusted
   */
  FileChannel open(String name, long length) throws NoCopy {
    Path path = folder.resolve(name);
    try {
      PosixFileAttributes found = trusted(folder);
      if (!found.isDirectory()) {
        throw new NoCopy(folder + " is no folder");
      }
      if (!trusted(path).isRegularFile()) {
        throw new NoCopy(path + " is no regular file");
      }
      FileChannel copy = FileChannel.open(path, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
      if (copy.size() != length) {
        copy.close();
        throw new NoCopy(path + " has another length than the original");
      }
      return copy;
    } catch (NoSuchFileException error) {
      throw new NoCopy("there is no " + error.getMessage());
    } catch (NoCopy reason) {
      throw reason;
    } catch (IOException error) {
      throw new NoCopy(error + ": the agent's file_mode must let this user read");
    }
  }

  /** Its own attributes, not those of what a link leads to. */
  private PosixFileAttributes trusted(Path path) throws IOException {
    PosixFileAttributes found = Files.readAttributes(path, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    if (found.isSymbolicLink()) {
      throw new NoCopy(path + " is a symbolic link");
    }
    if (!found.owner().getName().equals(user)) {
      throw new NoCopy(path + " belongs to " + found.owner() + ", and not to " + user
          + ", whom blast.agent.user names");
    }
    if (found.permissions().contains(PosixFilePermission.GROUP_WRITE)
        || found.permissions().contains(PosixFilePermission.OTHERS_WRITE)) {
      throw new NoCopy("others than " + user + " may write to " + path);
    }
    return found;
  }
}
