package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that messages survive encoding, and that any other text raises IOException. */
class MessageTest {
  private static final List<Message> ALL = List.of(
      Message.of(new Message.Hello("0", "h2", "192.0.2.1:9095")),
      Message.of(new Message.Hello("2", "r1h1", "agent-2.example")),
      Message.of(new Message.Hello("3", "r1h1", null)),
      Message.of(new Message.Hello("driver-1_x", "[2001:db8::1]", "fe80::1%eth0:9095")),
      Message.of(new Announcement(7, "app-1/7-00ff", 3, 4 << 20, 0, 1, false)),
      Message.of(new Announcement(
          Long.MAX_VALUE, "a/b", Integer.MAX_VALUE, Integer.MAX_VALUE, HoldTime.MAX_MILLIS, Announcement.MAX_FILES,
          true)),
      Message.over(0),
      Message.of(new Message.Taken(7, 0, 3, 0, 12, "it did\nnot arrive")));

  @Test
  void encodedMessageIsDecoded() throws IOException {
    for (Message message : ALL) {
      assertEquals(message, Message.read(message.text()));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "", " ", "null", "{}", "[]", "1", "\"\"", "true", "{", "}", "{\"hello\":1}", "{\"hello\":[]}", "{\"over\":{}}",
    "{\"over\":1.5}", "{\"over\":1e400}", "{\"over\":null}", "{\"over\":1,\"hello\":null}{}", "{\"other\":1}",
    "{\"hello\":{}}", "{\"hello\":{\"executor\":null,\"host\":\"h\",\"agent\":\"h:1\"}}",
    "{\"coming\":{}}", "{\"coming\":{\"broadcast\":null}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"a/b\",\"pieces\":-1,\"pieceBytes\":1,\"holdMillis\":0,\"fileCount\":1}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"a/b\",\"pieces\":1,\"pieceBytes\":0,\"holdMillis\":0,\"fileCount\":1}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"a\",\"pieces\":1,\"pieceBytes\":1,\"holdMillis\":600001,\"fileCount\":1}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"\",\"pieces\":1,\"pieceBytes\":1,\"holdMillis\":1,\"fileCount\":1}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"a/b\",\"pieces\":1,\"pieceBytes\":1,\"holdMillis\":1}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"a/b\",\"pieces\":1,\"pieceBytes\":1,\"holdMillis\":1,\"fileCount\":2}}",
    "{\"coming\":{\"broadcast\":1,\"name\":\"a/b\",\"pieces\":9,\"pieceBytes\":1,\"holdMillis\":1,\"fileCount\":5}}",
    "{\"taken\":{}}", "{\"taken\":{\"broadcast\":1,\"pieces\":-1,\"reason\":\"\"}}",
    "{\"over\":1,\"taken\":{\"broadcast\":1,\"reason\":\"\"}}",
  })
  void invalidTextIsRejected(String text) {
    assertThrows(IOException.class, () -> Message.read(text));
  }

  @Test
  void randomJsonIsDecodedOrRejected() {
    Random random = new Random(1);
    for (int round = 0; round < 3_000; round++) {
      refusedOrRead(shape(random, 4));
      StringBuilder changed = new StringBuilder(ALL.get(random.nextInt(ALL.size())).text());
      changed.setCharAt(random.nextInt(changed.length()), (char) (' ' + random.nextInt(95)));
      refusedOrRead(changed.toString());
    }
    refusedOrRead("[".repeat(60_000));
    refusedOrRead("{\"x\":" + "[".repeat(60_000));
    refusedOrRead("{\"hello\":{\"host\":" + "{\"a\":".repeat(12_000));
  }

  @ParameterizedTest
  @CsvSource({
    "0, h=evil, h:1", "0, -h, h:1", "0, 'h,h3', h:1", "0, 'h h', h:1", "0, h, ''", "0, h, h:",
    "0, h, h:0", "0, h, h:65536", "0, h, h:x", "0, h, h:1=2",
    "0, h, --secret-file:1", "0, h, h:123456", "'0\n', h, h:1", "'', h, h:1", "0, '', h:1", "0, 'h\n', h:1",
  })
  void invalidNameInHelloIsRejected(String executor, String host, String agent) {
    assertThrows(IllegalArgumentException.class, () -> new Message.Hello(executor, host, agent));
  }

  @Test
  void longReasonIsTruncated() {
    Message.Taken taken = new Message.Taken(1, 0, 0, 0, 0, "x".repeat(1 << 20));
    assertEquals(500, taken.reason().length());
  }

  private static void refusedOrRead(String text) {
    try {
      Message.read(text);
    } catch (IOException expected) {
      assertEquals(IOException.class, expected.getClass());
    }
  }

  private static String shape(Random random, int depth) {
    List<String> names = List.of(
        "hello", "coming", "over", "taken", "executor", "host", "broadcast", "name", "pieces", "reason", "x");
    return switch (random.nextInt(depth > 0 ? 8 : 6)) {
      case 0 -> "null";
      case 1 -> Long.toString(random.nextLong());
      case 2 -> "\"h" + random.nextInt() + "\"";
      case 3 -> "true";
      case 4 -> Double.toString(random.nextGaussian() * 1e300);
      case 5 -> "{}";
      case 6 -> "[" + shape(random, depth - 1) + "," + shape(random, depth - 1) + "]";
      default -> {
        StringBuilder object = new StringBuilder("{");
        for (int field = random.nextInt(4); field >= 0; field--) {
          object.append('"').append(names.get(random.nextInt(names.size()))).append("\":");
          object.append(shape(random, depth - 1)).append(field > 0 ? "," : "");
        }
        yield object.append('}').toString();
      }
    };
  }
}
