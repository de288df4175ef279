package org.blast.spark;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileLock;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The application's folder in that of this host's agent. It is ours alone; we hold a lock on its claim as long as we
 * live, and when nobody does any more, the agent removes it.
 */
final class HostFolder implements Closeable {
  static final String CLAIM = ".claim";
  private static final Logger LOG = LoggerFactory.getLogger(HostFolder.class);
  private static final String BLOCKS = ".blocks";
  private static final Pattern APPLICATION = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  private static final int TRIES = 10;
  static final int MAX_UNWANTED = 256;
  private static final Set<PosixFilePermission> OTHERS = EnumSet.complementOf(EnumSet.of(
      PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE));

  private final Path base;
  private final Path folder;
  private final FileLock claim;
  /** Files that may still come, the oldest first; what comes later still goes with the claim. */
  private final Set<String> unwanted = new LinkedHashSet<>();

  /**
   * Make it, or join the other executors of this host in it.
   *
   * @throws SwitchedOff where that cannot be
   */
  HostFolder(Path base, String application) throws SwitchedOff {
    if (!APPLICATION.matcher(application).matches()) {
      throw new SwitchedOff("the application's id " + application + " is no name for a folder");
    }
    this.base = base.normalize();
    folder = this.base.resolve(application);
    claim = claimed();
  }

  private FileLock claimed() throws SwitchedOff {
    try {
      for (int tries = 0; tries < TRIES; tries++) {
        FileLock lock = made() ? lock() : null;
        if (lock != null) {
          return lock;
        }
      }
    } catch (IOException error) {
      throw new SwitchedOff("the agent's folder " + base + " is not for us: " + error
          + " (BLAST_FOLDER or spark.blast.executorFolder names it; the agent should run as this user)", error);
    }
    throw new SwitchedOff("the folder " + folder + " is removed again and again");
  }

  /** Whether it is there, ours alone; not where the agent removes it in this very moment. */
  private boolean made() throws IOException {
    try {
      Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      return true;
    } catch (FileAlreadyExistsException error) {
      try {
        refuseOthers(folder);
        return true;
      } catch (NoSuchFileException gone) {
        return false;
      }
    }
  }

  /** A lock that counts: the agent may have removed the folder between our making and our locking. */
  private FileLock lock() throws IOException {
    Path path = folder.resolve(CLAIM);
    FileChannel channel;
    try {
      channel = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE,
          LinkOption.NOFOLLOW_LINKS);
    } catch (NoSuchFileException error) {
      return null;
    }
    FileLock lock = null;
    try {
      lock = channel.lock(0, Long.MAX_VALUE, true);
      if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
        lock = null;
      }
      return lock;
    } finally {
      if (lock == null) {
        channel.close();
      }
    }
  }

  /** Whether something of this name would be in our folder, and no other. */
  boolean owns(String name) {
    try {
      path(name);
      return true;
    } catch (IllegalArgumentException error) {
      return false;
    }
  }

  /** Whether what has this name is here, whole and verified. */
  boolean has(String name) {
    return Files.exists(path(name), LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * The pieces of what was announced, mapped. Nobody may unmap one while it is read; each can be unmapped by itself.
   *
   * @throws IOException where it is not what was announced, or not ours alone
   */
  ByteBuffer[] pieces(PieceFile coming) throws IOException {
    Path path = path(coming.name());
    refuseOthers(path);
    try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)) {
      long size = file.size();
      if (!coming.fits(size)) {
        throw new IOException(size + " bytes came, where " + coming.maxBytes() + " were announced");
      }
      ByteBuffer[] pieces = new ByteBuffer[coming.pieces()];
      for (int piece = 0; piece < pieces.length; piece++) {
        long begin = (long) piece * coming.pieceBytes();
        pieces[piece] = file.map(MapMode.READ_ONLY, begin, Math.min(coming.pieceBytes(), size - begin));
      }
      return pieces;
    }
  }

  /** Nobody wants this any more, also should it still come. The space is free when the last who mapped it lets go. */
  void remove(String name) {
    String file = path(name).getFileName().toString();
    synchronized (unwanted) {
      unwanted.remove(file);
      unwanted.add(file);
      if (unwanted.size() > MAX_UNWANTED) {
        unwanted.remove(unwanted.iterator().next());
      }
    }
    removeUnwanted();
  }

  /** What came after it was given up, and what the agent keeps of it for a sender that goes on; ours never does. */
  void removeUnwanted() {
    List<String> names;
    synchronized (unwanted) {
      names = List.copyOf(unwanted);
    }
    if (names.isEmpty()) {
      return;
    }
    try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
      for (Path one : all) {
        if (names.stream().anyMatch(name -> isOf(name, one.getFileName().toString()))) {
          Files.deleteIfExists(one);
        }
      }
    } catch (IOException | DirectoryIteratorException error) {
      LOG.debug("the next time", error);
    }
  }

  private static boolean isOf(String name, String called) {
    return called.equals(name) || called.endsWith("-" + name) || called.endsWith("-" + name + BLOCKS);
  }

  @Override
  public void close() throws IOException {
    removeUnwanted();
    claim.channel().close();
  }

  private Path path(String name) {
    Path path = base.resolve(name);
    if (!folder.equals(path.getParent()) || !path.equals(path.normalize()) || path.equals(folder.resolve(CLAIM))) {
      throw new IllegalArgumentException(name + " is not of this application");
    }
    return path;
  }

  /** What others could read or replace is no place for a job's data. */
  private static void refuseOthers(Path path) throws IOException {
    PosixFileAttributes found = Files.readAttributes(path, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    Object us = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    if (!Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS).equals(us)) {
      throw new IOException(path + " belongs to " + found.owner() + ", and not to the user of this executor");
    }
    Set<PosixFilePermission> open = EnumSet.copyOf(OTHERS);
    open.retainAll(found.permissions());
    if (!open.isEmpty()) {
      throw new IOException("others may open " + path + ": file_mode of the agent must be 0600");
    }
  }
}
