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

/** The copy is read where there is one to be trusted, the original everywhere else, and nothing is ever written. */
class BlastFileSystemTest {
  private static final int BYTES = 70_001;
  /** Never those of the original: so it shows which of the two was read. */
  private static final byte[] COPY = Bed.random(BYTES, 2);

  private static final Set<String> CHANGES =
      Set.of("setOwner", "setTimes", "setPermission", "setReplication", "mkdirs", "delete", "truncate");

  @TempDir Path base;
  private Bed bed;
  private byte[] original;

  @BeforeEach
  void make() throws IOException {
    bed = new Bed(base, BYTES);
    original = Files.readAllBytes(bed.original);
  }

  // ------------------------------------------------------------------------------------------------------ which one

  @Test
  void aCopyIsRead() throws IOException {
    Bed.write(bed.copy(), COPY);
    assertArrayEquals(COPY, bed.read());
  }

  @Test
  void withoutAnythingTheOriginalIs() throws IOException {
    assertArrayEquals(original, bed.read());
    Files.delete(bed.copies);
    assertArrayEquals(original, bed.read());
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, BYTES - 1, BYTES + 1})
  void aCopyOfAnotherLengthIsNone(int bytes) throws IOException {
    Bed.write(bed.copy(), Bed.random(bytes, 2));
    assertArrayEquals(original, bed.read());
  }

  @Test
  void aLinkIsNoCopy() throws IOException {
    Path elsewhere = base.resolve("elsewhere");
    Bed.write(elsewhere, COPY);
    Files.createSymbolicLink(bed.copy(), elsewhere);
    assertArrayEquals(original, bed.read());
  }

  @Test
  void aFolderBehindALinkIsNotBelieved() throws IOException {
    Bed.write(bed.copy(), COPY);
    Path link = Files.createSymbolicLink(base.resolve("link"), bed.copies);
    bed.conf.set(Settings.FOLDER_PATH, link.toString());
    assertArrayEquals(original, bed.read());
  }

  @Test
  void whatIsNoRegularFileIsNoCopy() throws IOException {
    Files.createDirectory(bed.copy());
    assertArrayEquals(original, bed.read());
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-rw-r--", "rw-r--rw-"})
  void aCopyThatOthersMayWriteIsNotBelieved(String permissions) throws IOException {
    Bed.write(bed.copy(), COPY);
    Files.setPosixFilePermissions(bed.copy(), PosixFilePermissions.fromString(permissions));
    assertArrayEquals(original, bed.read());
  }

  @ParameterizedTest
  @ValueSource(strings = {"rwxrwxr-x", "rwxr-xrwx"})
  void aFolderThatOthersMayWriteIsNotBelieved(String permissions) throws IOException {
    Bed.write(bed.copy(), COPY);
    Files.setPosixFilePermissions(bed.copies, PosixFilePermissions.fromString(permissions));
    assertArrayEquals(original, bed.read());
  }

  @Test
  void aCopyOfSomebodyElseIsNotBelieved() throws IOException {
    Bed.write(bed.copy(), COPY);
    bed.conf.set(Settings.AGENT_USER, "nobody-of-this-name");
    assertArrayEquals(original, bed.read());
  }

  @Test
  void onceTheOriginalHasChangedItIsRead() throws IOException {
    Bed.write(bed.copy(), COPY);
    Files.setLastModifiedTime(bed.original, FileTime.fromMillis(1_000_000));
    assertArrayEquals(original, bed.read());
  }

  @Test
  void onceTheOriginalHasGoneThereIsNothing() throws IOException {
    Bed.write(bed.copy(), COPY);
    Files.delete(bed.original);
    assertThrows(FileNotFoundException.class, bed::read);
  }

  @Test
  void whoMayNoLongerReadTheOriginalDoesNotGetTheCopy() throws IOException {
    Bed.write(bed.copy(), COPY);
    Files.setPosixFilePermissions(bed.original, PosixFilePermissions.fromString("---------"));
    assertThrows(AccessControlException.class, bed::read);
  }

  @Test
  void anEmptyFileIsReadWhereItIs() throws IOException {
    Bed.write(bed.original, new byte[0]);
    Bed.write(bed.copy(), new byte[0]);
    assertEquals(0, bed.read().length);
  }

  // -------------------------------------------------------------------------------------------------------- metadata

  @Test
  void whatItSaysOfAFileIsWhatTheOriginalSays() throws IOException {
    FileStatus real = FileSystem.getLocal(bed.conf).getFileStatus(new org.apache.hadoop.fs.Path(bed.original.toUri()));
    FileStatus ours = bed.files().getFileStatus(bed.path());
    assertEquals(bed.path(), ours.getPath());
    assertEquals(
        List.of(real.getLen(), real.getModificationTime(), real.getPermission(), real.getOwner(), real.getGroup()),
        List.of(ours.getLen(), ours.getModificationTime(), ours.getPermission(), ours.getOwner(), ours.getGroup()));
    assertEquals(bed.path(), bed.files().resolvePath(bed.path()));
    assertTrue(Arrays.asList(bed.files().listStatus(bed.path().getParent())).contains(ours));
  }

  @Test
  void namesWithSpecialCharactersAreFound() throws IOException {
    Path odd = base.resolve("a b%41#,ä");
    Bed.write(odd, original);
    assertEquals(BYTES, bed.files().getFileStatus(new org.apache.hadoop.fs.Path(
        URI.create(BlastUri.written(BlastUri.of(new org.apache.hadoop.fs.Path("file:" + odd).toUri()))))).getLen());
  }

  @Test
  void aPathOfAnotherFileSystemIsRefused() throws IOException {
    FileSystem files = bed.files();
    assertThrows(IllegalArgumentException.class, () -> files.open(new org.apache.hadoop.fs.Path("file:/etc/passwd")));
    assertThrows(IllegalArgumentException.class, () -> files.open(new org.apache.hadoop.fs.Path("blast://hdfs@h/w")));
  }

  @Test
  void tokensAreThoseOfTheOriginal() throws IOException {
    FileSystem files = bed.files();
    assertEquals(List.of(URI.create("file:///")),
        Arrays.stream(files.getChildFileSystems()).map(FileSystem::getUri).collect(Collectors.toList()));
    assertEquals(null, files.getCanonicalServiceName());
  }

  // --------------------------------------------------------------------------------------------------------- reading

  @Test
  void anyReadGivesTheSameFromBoth() throws IOException {
    try (FSDataInputStream plain = bed.files().open(bed.path())) {
      Bed.write(bed.copy(), original);
      try (FSDataInputStream copy = bed.files().open(bed.path())) {
        assertTrue(copy.getWrappedStream() instanceof CopyStream);
        Random random = new Random(20261123);
        for (int time = 0; time < 2_000; time++) {
          readSomewhere(random.nextInt(6), random.nextInt(BYTES + 1), random.nextInt(9_000), plain, copy);
          assertEquals(plain.getPos(), copy.getPos());
        }
      }
    }
  }

  private static void readSomewhere(int how, int at, int length, FSDataInputStream plain, FSDataInputStream copy)
      throws IOException {
    byte[] expected = new byte[length];
    byte[] found = new byte[length];
    switch (how) {
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
        // How much is there of what could not be read whole is nobody's affair.
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
  void readingBeyondTheFileEnds() throws IOException {
    Bed.write(bed.copy(), COPY);
    try (FSDataInputStream copy = bed.files().open(bed.path())) {
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
  void whateverWouldChangeAnythingIsRefused() throws IOException {
    FileSystem files = bed.files();
    org.apache.hadoop.fs.Path path = bed.path();
    org.apache.hadoop.fs.Path local = new org.apache.hadoop.fs.Path(bed.original.toUri());
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
    assertArrayEquals(original, Files.readAllBytes(bed.original));
  }

  /** What another version of Hadoop adds is seen here, and not by who loses a file. */
  @Test
  void nothingThatDoesNothingInFileSystemIsLeftToIt() {
    TreeSet<String> left = Arrays.stream(FileSystem.class.getMethods())
        .filter(method -> !Modifier.isStatic(method.getModifiers()) && CHANGES.contains(method.getName()))
        .filter(method -> !overridden(method))
        .map(method -> method.getName() + Arrays.toString(method.getParameterTypes()))
        .collect(Collectors.toCollection(TreeSet::new));
    // These call those that are ours.
    String path = "[class org.apache.hadoop.fs.Path]";
    assertEquals(Set.of("delete" + path, "mkdirs" + path), left);
  }

  private static boolean overridden(Method method) {
    return Arrays.stream(BlastFileSystem.class.getDeclaredMethods()).anyMatch(
        ours -> ours.getName().equals(method.getName())
            && Arrays.equals(ours.getParameterTypes(), method.getParameterTypes()));
  }
}
