package org.blast.hadoop;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** A host with an agent's folder, an original file on its disk, and a script as `blast`. */
final class HostFixture {
  final Path base;
  final Path copies;
  final Path original;
  final Configuration conf = new Configuration();

  HostFixture(Path base, int bytes) throws IOException {
    this.base = base;
    copies = Files.createDirectory(base.resolve("copies"));
    original = base.resolve("w.bin");
    write(original, random(bytes, 1));
    // JUnit creates private directories.
    Files.setPosixFilePermissions(base, PosixFilePermissions.fromString("rwxr-xr-x"));
    conf.set(Settings.FOLDER_PATH, copies.toString());
    conf.set(Settings.AGENT_USER, Files.getOwner(base).getName());
    // A cached file system would keep the folder of another test.
    conf.setBoolean("fs.blast.impl.disable.cache", true);
  }

  URI uri() throws Refused {
    return BlastUri.of(original.toUri());
  }

  org.apache.hadoop.fs.Path path() throws Refused {
    return new org.apache.hadoop.fs.Path(uri());
  }

  FileSystem files() throws IOException {
    return path().getFileSystem(conf);
  }

  /** Return the path of a copy of the current original. */
  Path copy() throws IOException {
    return copies.resolve(Copies.name(uri().toString(), conf));
  }

  byte[] read() throws IOException {
    try (var in = files().open(path())) {
      return in.readAllBytes();
    }
  }

  /** Replace `blast` by a script, in which $name is the name of the file. */
  void script(String... lines) throws IOException {
    Path script = base.resolve("blast");
    String name = "for word; do test \"$last\" = --as && name=$word; last=$word; done\n";
    Files.writeString(script, "#!/bin/sh\nset -e\n" + name + String.join("\n", lines) + "\n");
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-xr-x"));
    conf.set(Settings.COMMAND, script.toString());
  }

  static void write(Path path, byte[] bytes) throws IOException {
    Files.write(path, bytes);
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"));
  }

  static byte[] random(int bytes, int seed) {
    byte[] data = new byte[bytes];
    new Random(seed).nextBytes(data);
    return data;
  }
}
