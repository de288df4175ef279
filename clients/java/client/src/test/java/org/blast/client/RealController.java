package org.blast.client;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.blast.MulticastRequest;

/**
 * The real server with the real core, in a process that ends with this one: tests/support/served_controller.py. The
 * interpreter is the one that BLAST_PYTHON names, else that of the project's own environment.
 */
final class RealController {
  private static final Path PROJECT = Path.of("../../..");
  private static final Pattern ENTRY = Pattern.compile("\"(\\w+)\": \"([^\"]*)\"");
  private static RealController shared;

  /** Addresses and papers by name, as the script tells them. */
  private final Map<String, String> told = new HashMap<>();

  private RealController() throws IOException {
    Path own = PROJECT.resolve(".venv/bin/python").toAbsolutePath();
    String python = System.getenv().getOrDefault("BLAST_PYTHON", Files.exists(own) ? own.toString() : "python3");
    ProcessBuilder command =
        new ProcessBuilder(python, "-m", "tests.support.served_controller")
            .directory(PROJECT.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    command.environment().put("PYTHONPATH", new File(PROJECT.toString()).getCanonicalPath());
    BufferedReader output = command.start().inputReader(StandardCharsets.UTF_8);
    String line = output.readLine();
    if (line == null) {
      throw new IOException(python + " could not serve: does it have what requirements/ names?");
    }
    for (MatchResult entry : ENTRY.matcher(line).results().toList()) {
      told.put(entry.group(1), entry.group(2));
    }
  }

  static synchronized RealController shared() throws IOException {
    if (shared == null) {
      shared = new RealController();
    }
    return shared;
  }

  String get(String name) {
    return told.get(name);
  }

  Path file(String name) {
    return Path.of(told.get(name));
  }

  BlastClient client() {
    return BlastClient.builder().addresses(get("open")).build();
  }

  /** A request to two racks. */
  static MulticastRequest wanted(String key) {
    return new MulticastRequest(key, "r1h1", List.of("r2h1", "r3h1"), 300_000_000);
  }

  /** A request that has to wait as long as another of its kind is served, for it wants the same racks. */
  static MulticastRequest wanted(String key, int rack) {
    return new MulticastRequest(key, "r" + rack + "h1", List.of("r" + (rack % 6 + 1) + "h1"), 300_000_000);
  }
}
