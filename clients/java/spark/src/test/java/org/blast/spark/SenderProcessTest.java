package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that events of the sender are handled, and that any failure is reported once and leaves no spool. */
@Timeout(60)
class SenderProcessTest implements SenderProcess.Listener {
  @TempDir Path folder;
  private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

  @Override
  public void progress(String send, long bytes) {
    events.add("progress " + send + " " + bytes);
  }

  @Override
  public void ended(String send, SenderProcess.End end) {
    events.add("ended " + send + " " + end.delivered() + end.failed() + end.transports() + end.noOpticalPath());
  }

  @Override
  public void senderExited(String reason) {
    events.add("exited " + reason);
  }

  @Test
  void eventsOfTheProcessAreReported() throws Exception {
    try (SenderProcess sender = script("""
        printf '{"event": "ready", "spool": "%s"}\\n' "$0.spool"
        read -r asked
        printf '%s' "$asked" > "$0.asked"
        echo '{"event": "new kind", "anything": [1]}'
        echo '{"event": "progress", "send": "1", "median": 5, "failed": 0, "complete": 1, "demoted": []}'
        echo '{"event": "end", "send": "1", "delivered": ["h2"], "failed": {"h3": "no"}, "transports": ["optical"], \
        "seconds": 1.5, "bytes": 10, "no_optical_path": null}'
        echo '{"event": "refused", "send": "2", "reason": "full"}'
        echo '{"event": "refused", "send": null, "reason": "an unknown line"}'
        """)) {
      while (sender.spool() == null) {
        Thread.onSpinWait();
      }
      sender.send("1", Path.of("/f"), "a/1-x", "spark", List.of("h2=192.0.2.1:9095"));
      assertEquals("progress 1 5", events.take());
      assertEquals("ended 1 [h2]{h3=no}[optical]null", events.take());
      assertEquals("ended 2 []{=full}[]null", events.take());
      assertEquals("exited its output has ended", events.take());
      assertNull(sender.spool());
      var asked = new com.google.gson.Gson().fromJson(Files.readString(folder.resolve("blast.asked")), Map.class);
      assertEquals(
          Map.of("send", "1", "file", "/f", "name", "a/1-x", "folder", "spark", "to", List.of("h2=192.0.2.1:9095")),
          asked);
      assertThrows(IOException.class, () -> sender.send("2", Path.of("/f"), "n", "f", List.of()));
      sender.stop("1");
    }
    assertTrue(events.isEmpty());
  }

  @Test
  void processIsStartedWithTheOptions() throws Exception {
    try (SenderProcess sender = script("printf '%s,' \"$@\" > \"$0.arguments\"")) {
      assertEquals("exited its output has ended", events.take());
      assertEquals("sender,--via,a b;$(c),", Files.readString(folder.resolve("blast.arguments")));
      assertNull(sender.spool());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "", "null", "1", "nonsense", "[]", "{}", "{\"event\": null}", "{\"event\": \"ready\"}", "{\"event\": \"end\"}",
    "{\"event\": \"ready\", \"spool\": \"\\u0000\"}", "{\"event\": \"progress\", \"median\": {}}",
    "{\"event\": \"end\", \"send\": \"1\", \"delivered\": null, \"failed\": {}, \"transports\": []}",
    "{\"event\": \"end\", \"send\": \"1\", \"delivered\": [], \"failed\": {\"h\": {}}, \"transports\": []}",
    "{\"event\": \"refused\", \"send\": \"1\"}",
  })
  void invalidEventEndsTheProcess(String line) throws Exception {
    Files.writeString(folder.resolve("blast.line"), line + "\n");
    // The process would run until its input ends.
    try (SenderProcess sender = script("cat \"$0.line\"; read -r more; touch \"$0.closed\"")) {
      String exited = events.take();
      assertTrue(exited.startsWith("exited java.io.IOException: invalid event: " + line), exited);
      assertNull(sender.spool());
      assertThrows(IOException.class, () -> sender.send("1", Path.of("/f"), "n", "f", List.of()));
    }
    assertTrue(Files.exists(folder.resolve("blast.closed")));
    assertTrue(events.isEmpty());
  }

  @Test
  void spoolIsRemovedAfterTheProcessIsKilled() throws Exception {
    Path spool = Files.createDirectory(folder.resolve("blast.spool"));
    Files.writeString(spool.resolve("7"), "data");
    try (SenderProcess sender = script("""
        printf '{"event": "ready", "spool": "%s"}\\n' "$0.spool"
        read -r asked
        kill -9 $$
        """)) {
      while (sender.spool() == null) {
        Thread.onSpinWait();
      }
      sender.stop("nothing");
      assertEquals("exited its output has ended", events.take());
    }
    while (Files.exists(spool)) {
      Thread.onSpinWait();
    }
    assertFalse(Files.exists(spool));
  }

  @Test
  void closeReturnsIfTheProcessDoesNotRead() throws Exception {
    // The process ignores the end of its input, but not SIGTERM.
    SenderProcess sender = script("exec sleep 600");
    Thread writer = Daemon.start("test-writer", () -> {
      for (int send = 0; send < 100; send++) {
        sender.stop("x".repeat(10_000));
      }
    });
    sender.close();
    writer.join();
    assertEquals("exited its output has ended", events.take());
  }

  @Test
  void missingCommandThrows() {
    assertThrows(IOException.class, () -> new SenderProcess(settings(folder.resolve("none").toString()), this));
    assertThrows(IOException.class, () -> new SenderProcess(settings(folder.toString()), this));
    assertTrue(events.isEmpty());
  }

  private SenderProcess script(String lines) throws IOException {
    Path script = Files.writeString(folder.resolve("blast"), "#!/bin/sh\n" + lines);
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
    return new SenderProcess(settings(script.toString()), this);
  }

  private static PluginSettings settings(String command) {
    return new PluginSettings(command, List.of("--via", "a b;$(c)"), "spark", 0, 0, true);
  }
}
