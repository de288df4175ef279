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
 * The application's directory below the directory of this host's agent. Only the user of the executors can access it.
 * Each executor holds a lock on its claim file; the agent removes the directory when no process holds the lock.
 */
final class HostFolder implements Closeable {
  static final String CLAIM = ".claim";
  private static final Logger LOG = LoggerFactory.getLogger(HostFolder.class);
  private static final String BLOCKS = ".blocks";
  private static final Pattern APPLICATION = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  private static final int TRIES = 10;
  static final int MAX_STALE = 256;
  private static final Set<PosixFilePermission> OTHERS = EnumSet.complementOf(EnumSet.of(
      PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE));

  private final Path base;
  private final Path folder;
  private final FileLock claim;
  /** Removed files that may still arrive, the oldest first. Later arrivals disappear with the directory. */
  private final Set<String> stale = new LinkedHashSet<>();

  /**
   * Create the directory, or join the other executors of this host in it.
   *
   * @throws PluginDisabled if the directory is unusable
   */
  HostFolder(Path base, String application) throws PluginDisabled {
    if (!APPLICATION.matcher(application).matches()) {
      throw new PluginDisabled("the application id " + application + " cannot name a directory");
    }
    this.base = base.normalize();
    folder = this.base.resolve(application);
    claim = claimed();
  }

  private FileLock claimed() throws PluginDisabled {
    try {
      for (int tries = 0; tries < TRIES; tries++) {
        FileLock lock = createOrJoin() ? lock() : null;
        if (lock != null) {
          return lock;
        }
      }
    } catch (IOException error) {
      throw new PluginDisabled("cannot use the agent's directory " + base + ": " + error
          + " (run the agent as this user, and set BLAST_FOLDER or spark.blast.executorFolder to its directory)",
              error);
    }
    throw new PluginDisabled("another process keeps removing the directory " + folder);
  }

  /** Create the directory or check its permissions. Return false if the agent removes it at the same time. */
  private boolean createOrJoin() throws IOException {
    try {
      Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      return true;
    } catch (FileAlreadyExistsException error) {
      try {
        checkPrivate(folder);
        return true;
      } catch (NoSuchFileException removed) {
        return false;
      }
    }
  }

  /** Lock the claim file. Return null if the agent removed the directory before the lock took effect. */
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

  /** Return true if a file with this name would be in the application's directory. */
  boolean owns(String name) {
    try {
      path(name);
      return true;
    } catch (IllegalArgumentException error) {
      return false;
    }
  }

  /** Return true if the file has arrived: the agent names it once it is complete and verified. */
  boolean has(String name) {
    return Files.exists(path(name), LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * Map the pieces of an announced file, each separately, since Spark unmaps them one by one.
   *
   * @throws IOException if the size is not the announced one, or other users can access the file
   */
  ByteBuffer[] pieces(PieceFile file) throws IOException {
    Path path = path(file.name());
    checkPrivate(path);
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)) {
      long size = channel.size();
      if (!file.fits(size)) {
        throw new IOException("received " + size + " bytes, but " + file.maxBytes() + " were announced");
      }
      ByteBuffer[] pieces = new ByteBuffer[file.pieces()];
      for (int piece = 0; piece < pieces.length; piece++) {
        long begin = (long) piece * file.pieceBytes();
        pieces[piece] = channel.map(MapMode.READ_ONLY, begin, Math.min(file.pieceBytes(), size - begin));
      }
      return pieces;
    }
  }

  /** Remove a file, also if it arrives later. Its space is free once no process maps it. */
  void remove(String name) {
    String file = path(name).getFileName().toString();
    synchronized (stale) {
      stale.remove(file);
      stale.add(file);
      if (stale.size() > MAX_STALE) {
        stale.remove(stale.iterator().next());
      }
    }
    removeStale();
  }

  /** Remove files that arrived after their removal, and partial ones that the agent keeps for a sender that resumes. */
  void removeStale() {
    List<String> names;
    synchronized (stale) {
      names = List.copyOf(stale);
    }
    if (names.isEmpty()) {
      return;
    }
    try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
      for (Path one : all) {
        if (names.stream().anyMatch(name -> isVersionOf(name, one.getFileName().toString()))) {
          Files.deleteIfExists(one);
        }
      }
    } catch (IOException | DirectoryIteratorException error) {
      LOG.debug("cannot remove files, trying again later", error);
    }
  }

  private static boolean isVersionOf(String name, String found) {
    return found.equals(name) || found.endsWith("-" + name) || found.endsWith("-" + name + BLOCKS);
  }

  @Override
  public void close() throws IOException {
    removeStale();
    claim.channel().close();
  }

  private Path path(String name) {
    Path path = base.resolve(name);
    if (!folder.equals(path.getParent()) || !path.equals(path.normalize()) || path.equals(folder.resolve(CLAIM))) {
      throw new IllegalArgumentException(name + " does not belong to this application");
    }
    return path;
  }

  /** Check that no other user can read or replace a file or directory. */
  private static void checkPrivate(Path path) throws IOException {
    PosixFileAttributes found = Files.readAttributes(path, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    Object ownUid = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    if (!Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS).equals(ownUid)) {
      throw new IOException(path + " belongs to " + found.owner() + ", not to the user of this executor: run the "
          + "agent as that user");
    }
    Set<PosixFilePermission> open = EnumSet.copyOf(OTHERS);
    open.retainAll(found.permissions());
    if (!open.isEmpty()) {
      throw new IOException("other users can access " + path + ": set file_mode of the agent to 0600");
    }
  }
}
