package org.blast.hadoop;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.channels.FileChannel;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file system {@code blast:}, a read-only view of another file system that reads files from copies on this host.
 *
 * <p>It uses a copy only if the user may read the original, and only while the original is unchanged.
 */
public final class BlastFileSystem extends FileSystem {
  private static final Logger LOG = LoggerFactory.getLogger(BlastFileSystem.class);

  private URI uri;
  private FileSystem original;
  private CopyFolder folder;

  /** Creates a file system; Hadoop then calls {@link #initialize}. */
  public BlastFileSystem() {
    // Hadoop requires a public constructor.
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    URI root = BlastUri.originalOf(name);
    uri = URI.create(BlastUri.SCHEME + "://" + name.getAuthority());
    original = FileSystem.get(root, conf);
    folder = new Settings(conf).folder();
    setConf(conf);
  }

  @Override
  public String getScheme() {
    return BlastUri.SCHEME;
  }

  @Override
  public URI getUri() {
    return uri;
  }

  /** Returns the original file system, whose tokens a job needs. */
  @Override
  public FileSystem[] getChildFileSystems() {
    return new FileSystem[] {original};
  }

  // -------------------------------------------------------------------------------------------------------- reading

  @Override
  public FSDataInputStream open(Path path, int bufferBytes) throws IOException {
    Path originalPath = originalPath(path);
    try {
      FSDataInputStream copy = new FSDataInputStream(new CopyStream(copyOf(originalPath), statistics));
      LOG.info("reading {} from this host's copy", path);
      return copy;
    } catch (CopyUnavailable reason) {
      LOG.info("reading {} from {}: {}", path, originalPath, reason.getMessage());
      return original.open(originalPath, bufferBytes);
    }
  }

  private FileChannel copyOf(Path originalPath) throws IOException {
    FileStatus status = original.getFileStatus(originalPath);
    if (!status.isFile() || status.getLen() == 0) {
      throw new CopyUnavailable("it is not a file or is empty");
    }
    original.access(originalPath, FsAction.READ);
    return folder.open(CopyName.of(originalPath.toUri(), status), status.getLen());
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return toBlast(original.getFileStatus(originalPath(path)));
  }

  @Override
  public FileStatus[] listStatus(Path path) throws FileNotFoundException, IOException {
    FileStatus[] found = original.listStatus(originalPath(path));
    for (int one = 0; one < found.length; one++) {
      found[one] = toBlast(found[one]);
    }
    return found;
  }

  @Override
  public void access(Path path, FsAction mode) throws IOException {
    original.access(originalPath(path), mode);
  }

  @Override
  public FileChecksum getFileChecksum(Path path, long length) throws IOException {
    return original.getFileChecksum(originalPath(path), length);
  }

  @Override
  public BlockLocation[] getFileBlockLocations(Path path, long start, long length) throws IOException {
    return original.getFileBlockLocations(originalPath(path), start, length);
  }

  @Override
  public BlockLocation[] getFileBlockLocations(FileStatus file, long start, long length) throws IOException {
    return file == null ? null : getFileBlockLocations(file.getPath(), start, length);
  }

  @Override
  public FsStatus getStatus(Path path) throws IOException {
    return original.getStatus(path == null ? null : originalPath(path));
  }

  @Override
  public long getDefaultBlockSize(Path path) {
    return original.getDefaultBlockSize(originalPath(path));
  }

  @Override
  public short getDefaultReplication(Path path) {
    return original.getDefaultReplication(originalPath(path));
  }

  @Override
  public Path getWorkingDirectory() {
    return new Path(uri.getScheme(), uri.getAuthority(), original.getWorkingDirectory().toUri().getPath());
  }

  @Override
  public void setWorkingDirectory(Path path) {
    // All users in this process share the original file system.
    throw readOnly(path);
  }

  private Path originalPath(Path path) {
    checkPath(path);
    Path absolute = path.isAbsolute() ? path : new Path(getWorkingDirectory(), path);
    URI root = original.getUri();
    return new Path(root.getScheme(), root.getAuthority(), absolute.toUri().getPath());
  }

  private FileStatus toBlast(FileStatus status) throws IOException {
    FileStatus copy = new FileStatus(status);
    copy.setPath(new Path(uri.getScheme(), uri.getAuthority(), status.getPath().toUri().getPath()));
    return copy;
  }

  // ------------------------------------------------------------------------------------------------------- unsupported

  @Override
  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int bufferBytes,
      short replication, long blockBytes, Progressable progress) {
    throw readOnly(path);
  }

  @Override
  public FSDataOutputStream createNonRecursive(Path path, FsPermission permission, EnumSet<CreateFlag> flags,
      int bufferBytes, short replication, long blockBytes, Progressable progress) {
    throw readOnly(path);
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferBytes, Progressable progress) {
    throw readOnly(path);
  }

  @Override
  public boolean truncate(Path path, long length) {
    throw readOnly(path);
  }

  @Override
  public void concat(Path path, Path[] others) {
    throw readOnly(path);
  }

  @Override
  public boolean rename(Path path, Path to) {
    throw readOnly(path);
  }

  @Override
  public boolean delete(Path path, boolean recursive) {
    throw readOnly(path);
  }

  @Override
  public boolean deleteOnExit(Path path) {
    throw readOnly(path);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) {
    throw readOnly(path);
  }

  @Override
  public void createSymlink(Path target, Path link, boolean createParent) {
    throw readOnly(link);
  }

  @Override
  public boolean setReplication(Path path, short replication) {
    throw readOnly(path);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) {
    throw readOnly(path);
  }

  @Override
  public void setOwner(Path path, String user, String group) {
    throw readOnly(path);
  }

  @Override
  public void setTimes(Path path, long modified, long accessed) {
    throw readOnly(path);
  }

  private UnsupportedOperationException readOnly(Path path) {
    return new UnsupportedOperationException(
        "blast: is read-only: change " + path.toUri().getPath() + " in " + original.getUri());
  }
}
