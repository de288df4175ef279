package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that files of the application's directory are mapped if only their user can access them, and removed. */
class HostFolderTest {
  private static final String APPLICATION = "app-20261123-0001";

  @TempDir Path base;
  private Path ours;
  private HostFolder folder;

  @BeforeEach
  void make() throws PluginDisabled {
    folder = new HostFolder(base, APPLICATION);
    ours = base.resolve(APPLICATION);
  }

  @AfterEach
  void close() throws IOException {
    folder.close();
  }

  // -------------------------------------------------------------------------------------------------------- claims

  @Test
  void folderIsPrivateAndLockedUntilClosed() throws Exception {
    assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(ours)));
    // The agent locks exclusively before it removes a directory; other executors share the lock.
    assertFalse(locks("LOCK_EX"));
    assertTrue(locks("LOCK_SH"));
    folder.close();
    assertTrue(locks("LOCK_EX"));
  }

  @Test
  void existingFolderIsShared() throws Exception {
    folder.close();
    folder = new HostFolder(base, APPLICATION);
    assertFalse(locks("LOCK_EX"));
  }

  /** Return true if another process gets this lock on the claim file at once. */
  private boolean locks(String kind) throws Exception {
    String code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl." + kind + " | fcntl.LOCK_NB)";
    String python = System.getenv().getOrDefault("BLAST_PYTHON", "python3");
    return new ProcessBuilder(python, "-c", code, ours.resolve(HostFolder.CLAIM).toString()).start().waitFor() == 0;
  }

  // ----------------------------------------------------------------------------------------------------- refusals

  @ParameterizedTest
  @ValueSource(strings = {"rwxr-x---", "rwx-----x", "rwx---r--", "rwx-w----"})
  void folderThatOtherUsersCanAccessIsRejected(String permissions) throws IOException {
    Path open = Files.createDirectory(base.resolve("app-open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString(permissions));
    assertTrue(refused(base, "app-open").contains("other users can access " + open));
  }

  @Test
  void linkOrFileInsteadOfAFolderIsRejected() throws IOException {
    Files.createSymbolicLink(base.resolve("app-link"), ours);
    refused(base, "app-link");
    Files.writeString(base.resolve("app-file"), "");
    Files.setPosixFilePermissions(base.resolve("app-file"), PosixFilePermissions.fromString("rw-------"));
    refused(base, "app-file");
  }

  @Test
  void missingAgentFolderIsNamed() {
    String reason = refused(base.resolve("none"), APPLICATION);
    assertTrue(reason.contains(base.resolve("none").toString()) && reason.contains("BLAST_FOLDER"), reason);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ".", "..", "../x", "a/b", ".claim", "a b", "-x", "a\u0000b", "ä"})
  void invalidApplicationNameIsRejected(String application) {
    assertTrue(refused(base, application).endsWith("cannot name a directory"));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "x", "", APPLICATION, APPLICATION + "/", APPLICATION + "/..", APPLICATION + "/../x", APPLICATION + "/a/b",
    "other/x", APPLICATION + "/.", APPLICATION + "/.claim",
    "/etc/passwd", "../" + APPLICATION + "/x", APPLICATION + "/a\u0000",
    APPLICATION + "x/y",
  })
  void nameOutsideOfTheApplicationIsRejected(String name) {
    assertFalse(folder.owns(name));
    assertThrows(IllegalArgumentException.class, () -> folder.has(name));
    assertThrows(IllegalArgumentException.class, () -> folder.remove(name));
    assertTrue(Files.exists(ours.resolve(HostFolder.CLAIM)));
  }

  private static String refused(Path base, String application) {
    return assertThrows(PluginDisabled.class, () -> new HostFolder(base, application)).getMessage();
  }

  // -------------------------------------------------------------------------------------------------------- pieces

  @ParameterizedTest
  @CsvSource({"1, 1", "4096, 1", "8191, 2", "8192, 2", "8193, 3", "12287, 3", "20000, 5"})
  void fileIsMappedInPieces(int size, int pieces) throws IOException {
    byte[] data = new byte[size];
    new Random(size).nextBytes(data);
    PieceFile coming = announced("1-x", pieces, 4096);
    assertFalse(folder.has(coming.name()));
    arrive("1-x", data);
    assertTrue(folder.has(coming.name()));
    ByteBuffer joined = ByteBuffer.allocate(size);
    for (ByteBuffer piece : folder.pieces(coming)) {
      assertTrue(piece.isDirect() && piece.isReadOnly());
      joined.put(piece);
    }
    assertArrayEquals(data, joined.array());
  }

  @Test
  void mappedPieceRemainsAfterTheFileIsRemoved() throws IOException {
    arrive("1-x", new byte[] {1, 2, 3});
    ByteBuffer[] pieces = folder.pieces(announced("1-x", 2, 2));
    folder.remove(APPLICATION + "/1-x");
    assertEquals(3, pieces[1].get(0));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 4096, 8193})
  void fileOfAnotherSizeIsRejected(int size) throws IOException {
    arrive("1-x", new byte[size]);
    assertThrows(IOException.class, () -> folder.pieces(announced("1-x", 2, 4096)));
  }

  @Test
  void readableFileOfOthersAndLinkAreRejected() throws IOException {
    Path file = arrive("1-x", new byte[10]);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r-----"));
    IOException error = assertThrows(IOException.class, () -> folder.pieces(announced("1-x", 1, 10)));
    assertTrue(error.getMessage().contains("file_mode"), error.getMessage());
    Files.createSymbolicLink(ours.resolve("2-x"), arrive("3-x", new byte[10]));
    assertThrows(IOException.class, () -> folder.pieces(announced("2-x", 1, 10)));
  }

  // ------------------------------------------------------------------------------------------------------- removed

  @Test
  void removeDeletesTheFileAndItsTemporaryFiles() throws IOException {
    for (String name : new String[] {"1-x", ".blast-0a1b-1-x", ".blast-0a1b-1-x.blocks", "11-x", ".blast-0a1b-11-x"}) {
      arrive(name, new byte[1]);
    }
    folder.remove(APPLICATION + "/1-x");
    assertEquals("[.blast-0a1b-11-x, .claim, 11-x]", names());
  }

  @Test
  void fileThatArrivesAfterRemovalIsRemoved() throws IOException {
    folder.remove(APPLICATION + "/1-x");
    arrive("1-x", new byte[1]);
    folder.removeStale();
    // Once more: the sender has tried another transport.
    arrive(".blast-0a1b-1-x", new byte[1]);
    folder.removeStale();
    assertEquals("[.claim]", names());
  }

  @Test
  void removedNamesAreLimited() throws IOException {
    for (int number = 0; number <= HostFolder.MAX_STALE; number++) {
      folder.remove(APPLICATION + "/" + number + "-x");
    }
    arrive("0-x", new byte[1]);
    arrive("1-x", new byte[1]);
    folder.removeStale();
    assertEquals("[.claim, 0-x]", names());
  }

  private String names() throws IOException {
    try (Stream<Path> all = Files.list(ours)) {
      return all.map(path -> path.getFileName().toString()).collect(Collectors.toCollection(TreeSet::new)).toString();
    }
  }

  private Path arrive(String name, byte[] data) throws IOException {
    Path file = Files.write(ours.resolve(name), data);
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
  }

  private static PieceFile announced(String name, int pieces, int pieceBytes) {
    return new PieceFile(APPLICATION + "/" + name, 0, pieces, pieceBytes);
  }
}
