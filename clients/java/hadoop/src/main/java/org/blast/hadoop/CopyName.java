package org.blast.hadoop;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;

/** The name of a copy in the agents' folder. A changed file gets another name. */
final class CopyName {
  private static final Pattern NAME = Pattern.compile("[0-9a-f]{64}");

  private CopyName() {}

  /**
   * Return the name, 64 hexadecimal digits.
   *
   * @param original fully qualified URI of the file
   * @param status status of the file
   */
  static String of(URI original, FileStatus status) {
    // Unambiguous: only the path, the last component, can contain a line feed.
    String identity = String.join("\n", String.valueOf(status.getLen()), String.valueOf(status.getModificationTime()),
        original.getScheme(), String.valueOf(original.getAuthority()), original.getPath());
    StringBuilder name = new StringBuilder();
    for (byte one : sha256().digest(identity.getBytes(StandardCharsets.UTF_8))) {
      name.append(String.format("%02x", one));
    }
    return name.toString();
  }

  /** Return true if the text has the form of a name. */
  static boolean isName(String text) {
    return NAME.matcher(text).matches();
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException error) {
      throw new AssertionError("every Java platform has SHA-256", error);
    }
  }
}
