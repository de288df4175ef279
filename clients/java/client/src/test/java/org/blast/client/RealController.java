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
 * The real server and core, in a child process that ends with this one: tests/support/controller/served_controller.py.
 * BLAST_PYTHON names the Python interpreter. Default: that of the project's virtual environment.
 */
final class RealController {
  private static final Path PROJECT = Path.of("../../..");
  private static final Pattern ENTRY = Pattern.compile("\"(\\w+)\": \"([^\"]*)\"");
  private static RealController shared;

  /** Addresses and certificate files by name, which the script prints. */
  private final Map<String, String> values = new HashMap<>();

  private RealController() throws IOException {
    Path own = PROJECT.resolve(".venv/bin/python").toAbsolutePath();
    String python = System.getenv().getOrDefault("BLAST_PYTHON", Files.exists(own) ? own.toString() : "python3");
    ProcessBuilder command =
        new ProcessBuilder(python, "-m", "tests.support.controller.served_controller")
            .directory(PROJECT.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    command.environment().put("PYTHONPATH", new File(PROJECT.toString()).getCanonicalPath());
    BufferedReader output = command.start().inputReader(StandardCharsets.UTF_8);
    String line = output.readLine();
    if (line == null) {
      throw new IOException(python + " failed to start the controller: install the packages in requirements/");
    }
    for (MatchResult entry : ENTRY.matcher(line).results().toList()) {
      values.put(entry.group(1), entry.group(2));
    }
  }

  static synchronized RealController shared() throws IOException {
    if (shared == null) {
      shared = new RealController();
    }
    return shared;
  }

  String get(String name) {
    return values.get(name);
  }

  Path file(String name) {
    return Path.of(values.get(name));
  }

  BlastClient client() {
    return BlastClient.builder().addresses(get("open")).build();
  }

  /** Return a request for two racks. */
  static MulticastRequest request(String key) {
    return new MulticastRequest(key, "r1h1", List.of("r2h1", "r3h1"), 300_000_000);
  }

  /** Return a request for one rack, which waits while another one with the same rack is active. */
  static MulticastRequest request(String key, int rack) {
    return new MulticastRequest(key, "r" + rack + "h1", List.of("r" + (rack % 6 + 1) + "h1"), 300_000_000);
  }
}
