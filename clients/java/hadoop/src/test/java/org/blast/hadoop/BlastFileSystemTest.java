package org.blast.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that the file system reads trusted copies, else the original, and never writes. */
class BlastFileSystemTest {
  private static final int BYTES = 70_001;
  /** Differs from the original, which shows which of the two was read. */
  private static final byte[] COPY = HostFixture.random(BYTES, 2);

  private static final Set<String> CHANGES =
      Set.of("setOwner", "setTimes", "setPermission", "setReplication", "mkdirs", "delete", "truncate");

  @TempDir Path base;
  private HostFixture host;
  private byte[] original;

  @BeforeEach
  void make() throws IOException {
    host = new HostFixture(base, BYTES);
    original = Files.readAllBytes(host.original);
  }

  // ------------------------------------------------------------------------------------------------ choice of the copy

  @Test
  void copyIsReadIfItExists() throws IOException {
    HostFixture.write(host.copy(), COPY);
    assertArrayEquals(COPY, host.read());
  }

  @Test
  void originalIsReadWithoutACopy() throws IOException {
    assertArrayEquals(original, host.read());
    Files.delete(host.copies);
    assertArrayEquals(original, host.read());
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, BYTES - 1, BYTES + 1})
  void copyOfAnotherLengthIsIgnored(int bytes) throws IOException {
    HostFixture.write(host.copy(), HostFixture.random(bytes, 2));
    assertArrayEquals(original, host.read());
  }

  @Test
  void symbolicLinkIsIgnored() throws IOException {
    Path elsewhere = base.resolve("elsewhere");
    HostFixture.write(elsewhere, COPY);
    Files.createSymbolicLink(host.copy(), elsewhere);
    assertArrayEquals(original, host.read());
  }

  @Test
  void folderBehindALinkIsIgnored() throws IOException {
    HostFixture.write(host.copy(), COPY);
    Path link = Files.createSymbolicLink(base.resolve("link"), host.copies);
    host.conf.set(Settings.FOLDER_PATH, link.toString());
    assertArrayEquals(original, host.read());
  }

  @Test
  void directoryIsNoCopy() throws IOException {
    Files.createDirectory(host.copy());
    assertArrayEquals(original, host.read());
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-rw-r--", "rw-r--rw-"})
  void copyThatOtherUsersCanWriteIsIgnored(String permissions) throws IOException {
    HostFixture.write(host.copy(), COPY);
    Files.setPosixFilePermissions(host.copy(), PosixFilePermissions.fromString(permissions));
    assertArrayEquals(original, host.read());
  }

  @ParameterizedTest
  @ValueSource(strings = {"rwxrwxr-x", "rwxr-xrwx"})
  void folderThatOtherUsersCanWriteIsIgnored(String permissions) throws IOException {
    HostFixture.write(host.copy(), COPY);
    Files.setPosixFilePermissions(host.copies, PosixFilePermissions.fromString(permissions));
    assertArrayEquals(original, host.read());
  }

  @Test
  void copyOfAnotherOwnerIsIgnored() throws IOException {
    HostFixture.write(host.copy(), COPY);
    host.conf.set(Settings.AGENT_USER, "no-such-user");
    assertArrayEquals(original, host.read());
  }

  @Test
  void changedOriginalIsReadInsteadOfItsCopy() throws IOException {
    HostFixture.write(host.copy(), COPY);
    Files.setLastModifiedTime(host.original, FileTime.fromMillis(1_000_000));
    assertArrayEquals(original, host.read());
  }

  @Test
  void copyOfADeletedOriginalIsNotRead() throws IOException {
    HostFixture.write(host.copy(), COPY);
    Files.delete(host.original);
    assertThrows(FileNotFoundException.class, host::read);
  }

  @Test
  void copyOfAnUnreadableOriginalIsNotRead() throws IOException {
    HostFixture.write(host.copy(), COPY);
    Files.setPosixFilePermissions(host.original, PosixFilePermissions.fromString("---------"));
    assertThrows(AccessControlException.class, host::read);
  }

  @Test
  void emptyFileIsReadFromTheOriginal() throws IOException {
    HostFixture.write(host.original, new byte[0]);
    HostFixture.write(host.copy(), new byte[0]);
    assertEquals(0, host.read().length);
  }

  // -------------------------------------------------------------------------------------------------------- metadata

  @Test
  void fileStatusIsThatOfTheOriginal() throws IOException {
    FileStatus real = FileSystem.getLocal(
        host.conf).getFileStatus(new org.apache.hadoop.fs.Path(host.original.toUri()));
    FileStatus ours = host.files().getFileStatus(host.path());
    assertEquals(host.path(), ours.getPath());
    assertEquals(
        List.of(real.getLen(), real.getModificationTime(), real.getPermission(), real.getOwner(), real.getGroup()),
        List.of(ours.getLen(), ours.getModificationTime(), ours.getPermission(), ours.getOwner(), ours.getGroup()));
    assertEquals(host.path(), host.files().resolvePath(host.path()));
    assertTrue(Arrays.asList(host.files().listStatus(host.path().getParent())).contains(ours));
  }

  @Test
  void namesWithSpecialCharactersAreFound() throws IOException {
    Path odd = base.resolve("a b%41#,ä");
    HostFixture.write(odd, original);
    assertEquals(BYTES, host.files().getFileStatus(new org.apache.hadoop.fs.Path(
        URI.create(BlastUri.encode(BlastUri.of(new org.apache.hadoop.fs.Path("file:" + odd).toUri()))))).getLen());
  }

  @Test
  void pathOfAnotherFileSystemIsRejected() throws IOException {
    FileSystem files = host.files();
    assertThrows(IllegalArgumentException.class, () -> files.open(new org.apache.hadoop.fs.Path("file:/etc/passwd")));
    assertThrows(IllegalArgumentException.class, () -> files.open(new org.apache.hadoop.fs.Path("blast://hdfs@h/w")));
  }

  @Test
  void delegationTokensAreThoseOfTheOriginal() throws IOException {
    FileSystem files = host.files();
    assertEquals(List.of(URI.create("file:///")),
        Arrays.stream(files.getChildFileSystems()).map(FileSystem::getUri).collect(Collectors.toList()));
    assertEquals(null, files.getCanonicalServiceName());
  }

  // --------------------------------------------------------------------------------------------------------- reading

  @Test
  void readsOfCopyAndOriginalAreEqual() throws IOException {
    try (FSDataInputStream plain = host.files().open(host.path())) {
      HostFixture.write(host.copy(), original);
      try (FSDataInputStream copy = host.files().open(host.path())) {
        assertTrue(copy.getWrappedStream() instanceof CopyStream);
        Random random = new Random(20261123);
        for (int time = 0; time < 2_000; time++) {
          readSomewhere(random.nextInt(6), random.nextInt(BYTES + 1), random.nextInt(9_000), plain, copy);
          assertEquals(plain.getPos(), copy.getPos());
        }
      }
    }
  }

  private static void readSomewhere(int kind, int at, int length, FSDataInputStream plain, FSDataInputStream copy)
      throws IOException {
    byte[] expected = new byte[length];
    byte[] found = new byte[length];
    switch (kind) {
      case 0:
        plain.seek(at);
        copy.seek(at);
        break;
      case 1:
        assertEquals(plain.read(), copy.read());
        break;
      case 2:
        assertEquals(plain.readNBytes(expected, 0, length), copy.readNBytes(found, 0, length));
        break;
      case 3:
        assertEquals(plain.skip(length), copy.skip(length));
        break;
      case 4:
        assertEquals(at + length <= BYTES, reads(plain, at, expected));
        assertEquals(at + length <= BYTES, reads(copy, at, found));
        // After a failed read, the content of the buffer is undefined.
        found = at + length <= BYTES ? found : expected;
        break;
      default:
        ByteBuffer buffer = ByteBuffer.wrap(found);
        int read = copy.read(buffer);
        assertEquals(Math.max(read, 0), plain.readNBytes(expected, 0, Math.max(read, 0)));
    }
    assertArrayEquals(expected, found);
  }

  private static boolean reads(FSDataInputStream from, long at, byte[] buffer) throws IOException {
    try {
      from.readFully(at, buffer);
      return true;
    } catch (EOFException error) {
      return false;
    }
  }

  @Test
  void readingBeyondTheEndThrowsOrReturnsTheEnd() throws IOException {
    HostFixture.write(host.copy(), COPY);
    try (FSDataInputStream copy = host.files().open(host.path())) {
      assertThrows(EOFException.class, () -> copy.seek(BYTES + 1));
      assertThrows(EOFException.class, () -> copy.seek(-1));
      assertThrows(EOFException.class, () -> copy.read(-1, new byte[1], 0, 1));
      copy.seek(BYTES);
      assertEquals(-1, copy.read());
      assertEquals(-1, copy.read(BYTES, new byte[1], 0, 1));
      assertEquals(0, copy.available());
      assertFalse(copy.seekToNewSource(0));
    }
  }

  // ----------------------------------------------------------------------------------------------------- read only

  @Test
  void changesAreRejectedAndLeaveTheOriginal() throws IOException {
    FileSystem files = host.files();
    org.apache.hadoop.fs.Path path = host.path();
    org.apache.hadoop.fs.Path local = new org.apache.hadoop.fs.Path(host.original.toUri());
    List<Executable> changes = List.of(
        () -> files.create(path),
        () -> files.createFile(path).build(),
        () -> files.createNonRecursive(path, true, 1, (short) 1, 1, null),
        () -> files.append(path),
        () -> files.truncate(path, 0),
        () -> files.concat(path, new org.apache.hadoop.fs.Path[] {path}),
        () -> files.rename(path, new org.apache.hadoop.fs.Path(path.getParent(), "x")),
        () -> files.delete(path, false),
        () -> files.deleteOnExit(path),
        () -> files.mkdirs(path),
        () -> files.createSymlink(path, path, false),
        () -> files.setReplication(path, (short) 2),
        () -> files.setPermission(path, FsPermission.createImmutable((short) 0)),
        () -> files.setOwner(path, "x", "x"),
        () -> files.setTimes(path, 1, 1),
        () -> files.setWorkingDirectory(path),
        () -> files.copyFromLocalFile(local, new org.apache.hadoop.fs.Path(path.getParent(), "x")));
    for (Executable change : changes) {
      String message = assertThrows(UnsupportedOperationException.class, change).getMessage();
      assertTrue(message.contains("in file:/"), message);
    }
    assertArrayEquals(original, Files.readAllBytes(host.original));
  }

  /** Fails if a new version of Hadoop adds a method that changes files. */
  @Test
  void everyChangingMethodIsOverridden() {
    TreeSet<String> left = Arrays.stream(FileSystem.class.getMethods())
        .filter(method -> !Modifier.isStatic(method.getModifiers()) && CHANGES.contains(method.getName()))
        .filter(method -> !overridden(method))
        .map(method -> method.getName() + Arrays.toString(method.getParameterTypes()))
        .collect(Collectors.toCollection(TreeSet::new));
    // These call methods that BlastFileSystem overrides.
    String path = "[class org.apache.hadoop.fs.Path]";
    assertEquals(Set.of("delete" + path, "mkdirs" + path), left);
  }

  private static boolean overridden(Method method) {
    return Arrays.stream(BlastFileSystem.class.getDeclaredMethods()).anyMatch(
        ours -> ours.getName().equals(method.getName())
            && Arrays.equals(ours.getParameterTypes(), method.getParameterTypes()));
  }
}
