package org.blast.hadoop;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;

/**
 * What a copy is called in the agents' folder: another file, or the same one once it was changed, has another name.
 */
final class CopyName {
  private static final Pattern NAME = Pattern.compile("[0-9a-f]{64}");

  private CopyName() {}

  /**
   * The name, of 64 hexadecimal digits.
   *
   * @param original the file, fully qualified
   * @param status what its file system says of it
   */
  static String of(URI original, FileStatus status) {
    // The path is the only one that may have a new line in it.
    String identity = String.join("\n", String.valueOf(status.getLen()), String.valueOf(status.getModificationTime()),
        original.getScheme(), String.valueOf(original.getAuthority()), original.getPath());
    StringBuilder name = new StringBuilder();
    for (byte one : sha256().digest(identity.getBytes(StandardCharsets.UTF_8))) {
      name.append(String.format("%02x", one));
    }
    return name.toString();
  }

  /** Whether this is such a name. */
  static boolean isOne(String text) {
    return NAME.matcher(text).matches();
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException error) {
      throw new AssertionError("every Java has it", error);
    }
  }
}
