package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that a connection delivers lines once, in order and to the other side, and refuses all other lines. */
class AuthenticatedLinesTest {
  private static final byte[] KEY = "0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.UTF_8);
  private static final byte[] DRIVER = nonce(1);
  private static final byte[] EXECUTOR = nonce(2);

  @Test
  void linesAreReadInBothDirections() throws IOException {
    List<String> texts = List.of("", "a", "two words", "{\"ü\":\"€ 𝄞\"}", "x".repeat(60_000));
    for (boolean driver : new boolean[] {true, false}) {
      AuthenticatedLines reader = reader(KEY, !driver, EXECUTOR, DRIVER, written(driver, texts));
      for (String text : texts) {
        assertEquals(text, reader.read());
      }
      assertNull(reader.read());
    }
  }

  @Test
  void lineWithAnyChangedByteIsRejected() throws IOException {
    byte[] line = written(true, List.of("over 7"));
    for (int place = 0; place < line.length - 1; place++) {
      byte[] changed = line.clone();
      changed[place] ^= 1;
      if (changed[place] != '\n') {
        refused(changed);
      }
    }
  }

  @Test
  void replayedAndReorderedLinesAreRejected() throws IOException {
    byte[] both = written(true, List.of("one", "two"));
    byte[] one = written(true, List.of("one"));
    byte[] two = Arrays.copyOfRange(both, one.length, both.length);
    refused(two);
    AuthenticatedLines replayed = reader(KEY, false, EXECUTOR, DRIVER, joined(one, one));
    assertEquals("one", replayed.read());
    assertThrows(IOException.class, replayed::read);
  }

  @Test
  void reflectedLineIsRejected() throws IOException {
    byte[] ours = written(false, List.of("hello"));
    // Also if the peer reflects the reader's nonce.
    assertThrows(IOException.class, reader(KEY, false, EXECUTOR, EXECUTOR, ours)::read);
    assertThrows(IOException.class, reader(KEY, false, EXECUTOR, DRIVER, ours)::read);
  }

  @Test
  void lineOfAnotherConnectionOrKeyIsRejected() throws IOException {
    byte[] line = written(true, List.of("hello"));
    assertThrows(IOException.class, reader(KEY, false, nonce(3), DRIVER, line)::read);
    assertThrows(IOException.class, reader(KEY, false, EXECUTOR, nonce(3), line)::read);
    byte[] otherKey = KEY.clone();
    otherKey[31]++;
    assertThrows(IOException.class, reader(otherKey, false, EXECUTOR, DRIVER, line)::read);
  }

  @ParameterizedTest
  @ValueSource(strings = {"\n", " \n", "text\n", "= text\n", "AAAA text\n", "ü text\n", "\0\0 \0\n"})
  void garbageIsRejected(String garbage) throws IOException {
    refused(garbage.getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void readerStopsAtTheMaximumLength() throws IOException {
    ByteArrayInputStream endless = new ByteArrayInputStream(joined(DRIVER, new byte[1 << 20]));
    AuthenticatedLines lines = new AuthenticatedLines(KEY, endless, new ByteArrayOutputStream(), EXECUTOR, false);
    assertThrows(IOException.class, lines::read);
    assertEquals((1 << 20) - AuthenticatedLines.MAX_BYTES, endless.available());
  }

  @Test
  void writerLimitsLinesToTheMaximumLength() throws IOException {
    int maxLength = AuthenticatedLines.MAX_BYTES - written(true, List.of("")).length;
    String longest = "x".repeat(maxLength);
    assertEquals(longest, reader(KEY, false, EXECUTOR, DRIVER, written(true, List.of(longest))).read());
    assertThrows(IOException.class, () -> written(true, List.of(longest + "x")));
    assertThrows(IllegalArgumentException.class, () -> written(true, List.of("two\nlines")));
  }

  @Test
  void truncatedLineIsTheEnd() throws IOException {
    byte[] line = written(true, List.of("cut off"));
    for (int length = 0; length < line.length; length++) {
      assertNull(reader(KEY, false, EXECUTOR, DRIVER, Arrays.copyOf(line, length)).read());
    }
    ByteArrayInputStream half = new ByteArrayInputStream(DRIVER, 0, AuthenticatedLines.NONCE_BYTES - 1);
    assertThrows(IOException.class, () -> new AuthenticatedLines(KEY, half, new ByteArrayOutputStream(), EXECUTOR,
        false));
  }

  private static void refused(byte[] line) throws IOException {
    assertThrows(IOException.class, reader(KEY, false, EXECUTOR, DRIVER, line)::read);
  }

  private static byte[] written(boolean driver, List<String> texts) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    byte[] theirs = driver ? EXECUTOR : DRIVER;
    AuthenticatedLines lines = new AuthenticatedLines(KEY, new ByteArrayInputStream(theirs), out, driver
        ? DRIVER : EXECUTOR, driver);
    out.reset();
    for (String text : texts) {
      lines.write(text);
    }
    return out.toByteArray();
  }

  /** Return a reader; the nonces are its own and the peer's for an executor, and swapped for a driver. */
  private static AuthenticatedLines reader(byte[] key, boolean driver, byte[] executor, byte[] other, byte[] lines)
      throws IOException {
    byte[] ours = driver ? other : executor;
    byte[] theirs = driver ? executor : other;
    return new AuthenticatedLines(
        key, new ByteArrayInputStream(joined(theirs, lines)), new ByteArrayOutputStream(), ours, driver);
  }

  private static byte[] joined(byte[] first, byte[] second) {
    byte[] all = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, all, first.length, second.length);
    return all;
  }

  private static byte[] nonce(int value) {
    byte[] nonce = new byte[AuthenticatedLines.NONCE_BYTES];
    Arrays.fill(nonce, (byte) value);
    return nonce;
  }
}
