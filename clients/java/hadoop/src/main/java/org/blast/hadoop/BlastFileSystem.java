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
 * {@code blast:} stands in front of another file system: everything is as it is there, and read only; but a file of
 * which this host has a copy is read from that.
 *
 * <p>A copy is taken only by who may read the original, and only while the original is what was sent.
 */
public final class BlastFileSystem extends FileSystem {
  private static final Logger LOG = LoggerFactory.getLogger(BlastFileSystem.class);

  private URI uri;
  private FileSystem original;
  private CopyFolder folder;

  /** One that {@link #initialize} is still to be called of. */
  public BlastFileSystem() {
    // Documented above.
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    URI behind = BlastUri.originalOf(name);
    uri = URI.create(BlastUri.SCHEME + "://" + name.getAuthority());
    original = FileSystem.get(behind, conf);
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

  /** The original one: whose tokens a job needs. */
  @Override
  public FileSystem[] getChildFileSystems() {
    return new FileSystem[] {original};
  }

  // -------------------------------------------------------------------------------------------------------- reading

  @Override
  public FSDataInputStream open(Path path, int bufferBytes) throws IOException {
    Path behind = behind(path);
    try {
      FSDataInputStream copy = new FSDataInputStream(new CopyStream(copyOf(behind), statistics));
      LOG.info("{} is read from this host's copy", path);
      return copy;
    } catch (NoCopy reason) {
      LOG.info("{} is read from {}: {}", path, behind, reason.getMessage());
      return original.open(behind, bufferBytes);
    }
  }

  private FileChannel copyOf(Path behind) throws IOException {
    FileStatus status = original.getFileStatus(behind);
    if (!status.isFile() || status.getLen() == 0) {
      throw new NoCopy("there is nothing in it");
    }
    original.access(behind, FsAction.READ);
    return folder.open(CopyName.of(behind.toUri(), status), status.getLen());
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return inFront(original.getFileStatus(behind(path)));
  }

  @Override
  public FileStatus[] listStatus(Path path) throws FileNotFoundException, IOException {
    FileStatus[] found = original.listStatus(behind(path));
    for (int one = 0; one < found.length; one++) {
      found[one] = inFront(found[one]);
    }
    return found;
  }

  @Override
  public void access(Path path, FsAction mode) throws IOException {
    original.access(behind(path), mode);
  }

  @Override
  public FileChecksum getFileChecksum(Path path, long length) throws IOException {
    return original.getFileChecksum(behind(path), length);
  }

  @Override
  public BlockLocation[] getFileBlockLocations(Path path, long start, long length) throws IOException {
    return original.getFileBlockLocations(behind(path), start, length);
  }

  @Override
  public BlockLocation[] getFileBlockLocations(FileStatus file, long start, long length) throws IOException {
    return file == null ? null : getFileBlockLocations(file.getPath(), start, length);
  }

  @Override
  public FsStatus getStatus(Path path) throws IOException {
    return original.getStatus(path == null ? null : behind(path));
  }

  @Override
  public long getDefaultBlockSize(Path path) {
    return original.getDefaultBlockSize(behind(path));
  }

  @Override
  public short getDefaultReplication(Path path) {
    return original.getDefaultReplication(behind(path));
  }

  @Override
  public Path getWorkingDirectory() {
    return new Path(uri.getScheme(), uri.getAuthority(), original.getWorkingDirectory().toUri().getPath());
  }

  @Override
  public void setWorkingDirectory(Path path) {
    // The original is shared with everybody in this process.
    throw readOnly(path);
  }

  private Path behind(Path path) {
    checkPath(path);
    Path absolute = path.isAbsolute() ? path : new Path(getWorkingDirectory(), path);
    URI root = original.getUri();
    return new Path(root.getScheme(), root.getAuthority(), absolute.toUri().getPath());
  }

  private FileStatus inFront(FileStatus status) throws IOException {
    FileStatus ours = new FileStatus(status);
    ours.setPath(new Path(uri.getScheme(), uri.getAuthority(), status.getPath().toUri().getPath()));
    return ours;
  }

  // ------------------------------------------------------------------------------------------------------- refused

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
        "blast: is there to be read only: change " + path.toUri().getPath() + " in " + original.getUri());
  }
}
