package org.blast.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.mapreduce.Job;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that pushed files are found on the nodes, that failures are reported, and that they do not stop a job. */
class PushTest {
  /** More than fits into a pipe, so that the writer blocks until the reader reads. */
  private static final int BYTES = (2 << 20) + 1;

  @TempDir Path base;
  private HostFixture host;
  private String out;
  private String err;

  @BeforeEach
  void make() throws IOException {
    host = new HostFixture(base, BYTES);
  }

  private int run(String... words) throws Exception {
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    ByteArrayOutputStream warned = new ByteArrayOutputStream();
    int status = BlastTool.run(words, host.conf, new PrintStream(printed, true, StandardCharsets.UTF_8),
        new PrintStream(warned, true, StandardCharsets.UTF_8));
    out = printed.toString(StandardCharsets.UTF_8);
    err = warned.toString(StandardCharsets.UTF_8);
    return status;
  }

  private static String result(String... receivers) {
    return "echo '{\"event\": \"progress\", \"failed\": 0}'\n"
        + "echo '{\"event\": \"result\", \"transfers\": [{\"receivers\": [" + String.join(", ", receivers)
        + "]}], \"unreachable\": {}}'";
  }

  private static String has(String host) {
    return "{\"name\": \"" + host + "\", \"complete\": true, \"reason\": \"\"}";
  }

  private static String lacks(String host) {
    return "{\"name\": \"" + host + "\", \"complete\": false, \"reason\": \"no room\"}";
  }

  private String keep() {
    return "cat > " + host.copies + "/$name; chmod 644 " + host.copies + "/$name";
  }

  @Test
  void pushedFileIsReadOnTheNodes() throws Exception {
    host.script("echo \"$*\" > " + base.resolve("arguments"), keep(), result(has("h2"), has("h3")));
    host.conf.set("blast.send.secret-file", "/etc/blast/secret");
    host.conf.set("blast.send.sealed", "true");
    host.conf.set("blast.send.ssh", "false");
    String file = host.original.toString();
    assertEquals(BlastTool.DONE, run("push", "-D", "blast.send.via=pipeline", "--to", "h2,h3:7", file));
    assertEquals(host.uri() + "\n", out);
    assertEquals("", err);
    assertEquals("send --sealed --secret-file /etc/blast/secret --via pipeline --json --as " + host.copy().getFileName()
        + " --folder hadoop --to h2,h3:7 --bytes " + BYTES + " -\n", Files.readString(base.resolve("arguments")));
    assertArrayEquals(Files.readAllBytes(host.original), Files.readAllBytes(host.copy()));
    Files.delete(host.copy());
    assertArrayEquals(Files.readAllBytes(host.original), host.read());
  }

  @Test
  void jsonReportsDeliveredAndFailedHosts() throws Exception {
    host.script(keep(), result(has("h2"), lacks("h3")));
    assertEquals(BlastTool.PARTIAL, run("push", "--json", "--to", "h2,h3", host.original.toString()));
    assertEquals(String.format(
        "{\"uri\":\"%s\",\"copy\":\"%s\",\"bytes\":%d,\"delivered\":[\"h2\"],\"failed\":{\"h3\":\"no room\"}}%n",
        host.uri(), host.copy().getFileName(), BYTES), out);
    assertEquals("blast: h3 has no copy of " + host.uri() + ": no room\n", err);
  }

  @ParameterizedTest
  @CsvSource({"0, 0, 0", "0, 3, 3", "1, 1, 1", "1, 0, 3", "1, 3, 3", "3, 3, 3"})
  void exitStatusCombinesAllFiles(int first, int second, int together) {
    List<Delivery> deliveries = new ArrayList<>();
    for (int status : new int[] {first, second}) {
      List<String> delivered = status == BlastTool.FAILED ? List.of() : List.of("h2");
      Map<String, String> failed = status == BlastTool.DONE ? Map.of() : Map.of("h3", "no room");
      deliveries.add(new Delivery(delivered, failed));
    }
    assertEquals(together, BlastTool.status(deliveries));
  }

  @Test
  void hostWithOneCompleteTransferIsDelivered() {
    Delivery delivery = Delivery.read("{\"event\": \"result\", \"transfers\": [{\"receivers\": [" + lacks("h2")
        + "]}, {\"receivers\": [" + has("h2") + "]}], \"unreachable\": {\"h3\": \"no Python\"}}");
    assertEquals(List.of("h2"), delivery.delivered());
    assertEquals("{h3=no Python}", delivery.failed().toString());
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "null", "[]", "{}", "{\"event\": \"progress\"}", "result", "{\"event\": \"res"})
  void otherOutputLinesAreNoResult(String line) {
    assertEquals(null, Delivery.read(line));
  }

  // ---------------------------------------------------------------------------------------------------------- refused

  @Test
  void fileThatChangesDuringItsTransferIsRejected() throws Exception {
    Path before = host.copy();
    host.script("head -c 1 > /dev/null", "touch -d 2001-01-01 " + host.original, keep(), result(has("h2")));
    assertEquals(BlastTool.USAGE_ERROR, run("push", "--to", "h2", host.original.toString()));
    assertTrue(err.contains("changed during the transfer"), err);
    assertFalse(Files.exists(before) && Files.size(before) == BYTES);
    assertEquals("", out);
  }

  @Test
  void unreadableFileIsRejectedBeforeTheTransfer() throws Exception {
    host.script("touch " + base.resolve("sent"));
    Path hidden = Files.createDirectory(base.resolve("hidden"));
    HostFixture.write(hidden.resolve("w"), new byte[1]);
    Files.setPosixFilePermissions(hidden, PosixFilePermissions.fromString("rwxr-xr--"));
    Path secret = base.resolve("secret");
    HostFixture.write(secret, new byte[1]);
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-r-----"));
    for (Path file : List.of(secret, hidden.resolve("w"))) {
      assertEquals(BlastTool.USAGE_ERROR, run("push", "--to", "h2", host.original.toString(), file.toString()));
      assertTrue(err.contains(file + " is not readable by all users"), err);
    }
    assertFalse(Files.exists(base.resolve("sent")));
  }

  @Test
  void pushReportsDirectoriesAndMissingFiles() throws Exception {
    assertEquals(BlastTool.USAGE_ERROR, run("push", "--to", "h2", base.toString()));
    assertEquals(BlastTool.FAILED, run("push", "--to", "h2", base + "/none"));
    assertTrue(err.contains(base + "/none"), err);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "push", "pull x", "push --to", "push --fast x", "push x -D a=b", "remove", "remove x"})
  void invalidArgumentsReturnAUsageError(String words) throws Exception {
    assertEquals(BlastTool.USAGE_ERROR, run(words.isEmpty() ? new String[0] : words.split(" ")));
    assertTrue(err.startsWith("blast: ") && err.length() < 300, err);
  }

  @ParameterizedTest
  @ValueSource(strings = {"to", "as", "name", "bytes", "folder", "command", "json"})
  void optionThatPushSetsItselfIsRejected(String option) throws Exception {
    host.conf.set("blast.send." + option, "x");
    assertEquals(BlastTool.USAGE_ERROR, run("push", "--to", "h2", host.original.toString()));
    assertTrue(err.contains("blast.send." + option), err);
  }

  @Test
  void exitStatusOfBlastSendDeterminesTheResult() throws Exception {
    host.script("exit 2");
    assertEquals(BlastTool.USAGE_ERROR, run("push", "--to", "h2", host.original.toString()));
    host.script("cat > /dev/null", "exit 1");
    assertEquals(BlastTool.FAILED, run("push", "--to", "h2", host.original.toString()));
    assertEquals(host.uri() + "\n", out);
    assertTrue(err.contains("h2 has no copy of") && err.contains("status 1"), err);
    host.conf.set(Settings.COMMAND, base.resolve("nothing").toString());
    assertEquals(BlastTool.FAILED, run("push", "--to", "h2", host.original.toString()));
  }

  // ---------------------------------------------------------------------------------------------------------- removed

  @Test
  void removedCopyIsNotRead() throws Exception {
    host.script(keep(), result(has("h2")));
    run("push", "--to", "h2", host.original.toString());
    assertEquals(BlastTool.DONE, run("remove", "--to", "h2", host.uri().toString()), err);
    assertEquals(0, Files.size(host.copy()));
    assertArrayEquals(Files.readAllBytes(host.original), host.read());
  }

  @Test
  void copyOfADeletedOriginalIsRemovedByName() throws Exception {
    host.script(keep(), result(lacks("h2")));
    String name = host.copy().getFileName().toString();
    Files.delete(host.original);
    assertEquals(BlastTool.FAILED, run("remove", "--to", "h2", host.uri().toString()));
    assertEquals(BlastTool.FAILED, run("remove", "--to", "h2", name));
    assertEquals("blast: cannot remove the copy on h2: no room\n", err);
    assertEquals(0, Files.size(host.copies.resolve(name)));
  }

  // ------------------------------------------------------------------------------------------------------ in a driver

  @Test
  void jobReadsTheOriginalIfThePushFails() throws Exception {
    // No ResourceManager runs, and its client fails fast.
    host.conf.setInt("yarn.client.failover-max-attempts", 0);
    host.conf.set("yarn.resourcemanager.address", "127.0.0.1:1");
    host.conf.setInt("yarn.resourcemanager.connect.max-wait.ms", 1);
    host.conf.setInt("yarn.resourcemanager.connect.retry-interval.ms", 1);
    host.conf.setInt("ipc.client.connect.max.retries", 0);
    Job job = Job.getInstance(host.conf);
    Delivery delivery = BlastCache.addCacheFile(job, new org.apache.hadoop.fs.Path(host.original.toUri()), "weights");
    assertEquals(List.of(), delivery.delivered());
    assertArrayEquals(new URI[] {URI.create(host.uri() + "#weights")}, job.getCacheFiles());
  }
}
