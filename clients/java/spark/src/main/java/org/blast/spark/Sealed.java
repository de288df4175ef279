package org.blast.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Lines over a connection, each with a proof that whoever sent it knows the application's key, in this place and order.
 *
 * <p>A line is PROOF SPACE TEXT LF; the proof is HMAC-SHA256 over the two ends' nonces, the sender's side, the number
 * of the line, and the text. Both ends begin with a nonce of their own, so that nothing said on one connection is worth
 * anything on another. Not thread-safe, but for one that reads beside one that writes.
 */
final class Sealed {
  static final int NONCE_BYTES = 16;
  static final int MAX_BYTES = 1 << 16;
  private static final String HMAC = "HmacSHA256";

  private final SecretKeySpec key;
  private final InputStream in;
  private final OutputStream out;
  private final byte[] ours;
  private final byte[] theirs;
  private final boolean driver;
  private long read;
  private long written;

  /**
   * Exchange nonces.
   *
   * @param driver which side we are
   * @throws IOException where the connection ends
   */
  Sealed(byte[] key, InputStream in, OutputStream out, byte[] nonce, boolean driver) throws IOException {
    this.key = new SecretKeySpec(key, HMAC);
    this.in = in;
    this.out = out;
    this.driver = driver;
    ours = nonce.clone();
    out.write(ours);
    out.flush();
    theirs = in.readNBytes(NONCE_BYTES);
    if (theirs.length < NONCE_BYTES) {
      throw new IOException("the other side has gone before it said anything");
    }
  }

  /**
   * Say something, in one line.
   *
   * @throws IOException where the connection ends, or the other side would not read so long a line
   */
  void write(String text) throws IOException {
    if (text.indexOf('\n') >= 0) {
      throw new IllegalArgumentException("that is more than one line");
    }
    String proof = Base64.getEncoder().encodeToString(proof(driver, written, text));
    byte[] line = (proof + " " + text + "\n").getBytes(StandardCharsets.UTF_8);
    if (line.length > MAX_BYTES) {
      throw new IOException("a line of more than " + MAX_BYTES + " bytes");
    }
    written++;
    out.write(line);
    out.flush();
  }

  /**
   * What the other side says next; null at its end.
   *
   * @throws IOException where the connection ends, or what comes is not the other side's
   */
  String read() throws IOException {
    String line = line();
    if (line == null) {
      return null;
    }
    int space = line.indexOf(' ');
    String text = line.substring(space + 1);
    if (space < 0 || !MessageDigest.isEqual(decoded(line.substring(0, space)), proof(!driver, read++, text))) {
      throw new IOException("what came is not from this application");
    }
    return text;
  }

  private String line() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int next = in.read(); next != '\n'; next = in.read()) {
      if (next < 0) {
        return null;
      }
      if (line.size() == MAX_BYTES - 1) {
        throw new IOException("a line of more than " + MAX_BYTES + " bytes");
      }
      line.write(next);
    }
    return line.toString(StandardCharsets.UTF_8);
  }

  private static byte[] decoded(String proof) {
    try {
      return Base64.getDecoder().decode(proof);
    } catch (IllegalArgumentException error) {
      return new byte[0];
    }
  }

  private byte[] proof(boolean byDriver, long number, String text) {
    try {
      Mac mac = Mac.getInstance(HMAC);
      mac.init(key);
      mac.update(driver ? ours : theirs);
      mac.update(driver ? theirs : ours);
      mac.update((byte) (byDriver ? 1 : 0));
      mac.update(ByteBuffer.allocate(Long.BYTES).putLong(number).array());
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("every Java has HMAC-SHA256", error);
    }
  }
}
