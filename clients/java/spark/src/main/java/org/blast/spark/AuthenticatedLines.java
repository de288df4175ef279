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
 * A connection for lines of text, each with a message authentication code under the application's key.
 *
 * <p>A line is MAC SPACE TEXT LF. The MAC is HMAC-SHA256 over both nonces, the side of the writer, the number of the
 * line, and the text, which excludes replayed, reordered and reflected lines. Each side starts with a nonce of its own,
 * so that lines of one connection are invalid on another. Thread-safe for one reader and one writer.
 */
final class AuthenticatedLines {
  static final int NONCE_BYTES = 16;
  static final int MAX_BYTES = 1 << 16;
  private static final String HMAC = "HmacSHA256";

  private final SecretKeySpec key;
  private final InputStream in;
  private final OutputStream out;
  private final byte[] ownNonce;
  private final byte[] peerNonce;
  private final boolean driver;
  private long read;
  private long written;

  /**
   * Exchange nonces.
   *
   * @param driver true on the driver's side, false on the executor's
   * @throws IOException if the connection ends
   */
  AuthenticatedLines(byte[] key, InputStream in, OutputStream out, byte[] nonce, boolean driver) throws IOException {
    this.key = new SecretKeySpec(key, HMAC);
    this.in = in;
    this.out = out;
    this.driver = driver;
    ownNonce = nonce.clone();
    out.write(ownNonce);
    out.flush();
    peerNonce = in.readNBytes(NONCE_BYTES);
    if (peerNonce.length < NONCE_BYTES) {
      throw new IOException("the peer closed the connection before its nonce");
    }
  }

  /**
   * Write one line.
   *
   * @throws IOException if the connection ends, or the line is too long
   */
  void write(String text) throws IOException {
    if (text.indexOf('\n') >= 0) {
      throw new IllegalArgumentException("the text contains a line feed");
    }
    String mac = Base64.getEncoder().encodeToString(mac(driver, written, text));
    byte[] line = (mac + " " + text + "\n").getBytes(StandardCharsets.UTF_8);
    if (line.length > MAX_BYTES) {
      throw new IOException("the line exceeds " + MAX_BYTES + " bytes");
    }
    written++;
    out.write(line);
    out.flush();
  }

  /**
   * Read the next line. Return null at the end of the connection.
   *
   * @throws IOException if the connection ends, or the MAC is invalid
   */
  String read() throws IOException {
    String line = line();
    if (line == null) {
      return null;
    }
    int space = line.indexOf(' ');
    String text = line.substring(space + 1);
    if (space < 0 || !MessageDigest.isEqual(decoded(line.substring(0, space)), mac(!driver, read++, text))) {
      throw new IOException("invalid MAC: the peer does not know the key of this application");
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
        throw new IOException("the line exceeds " + MAX_BYTES + " bytes");
      }
      line.write(next);
    }
    return line.toString(StandardCharsets.UTF_8);
  }

  private static byte[] decoded(String mac) {
    try {
      return Base64.getDecoder().decode(mac);
    } catch (IllegalArgumentException error) {
      return new byte[0];
    }
  }

  private byte[] mac(boolean byDriver, long number, String text) {
    try {
      Mac mac = Mac.getInstance(HMAC);
      mac.init(key);
      mac.update(driver ? ownNonce : peerNonce);
      mac.update(driver ? peerNonce : ownNonce);
      mac.update((byte) (byDriver ? 1 : 0));
      mac.update(ByteBuffer.allocate(Long.BYTES).putLong(number).array());
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("every Java platform has HMAC-SHA256", error);
    }
  }
}
