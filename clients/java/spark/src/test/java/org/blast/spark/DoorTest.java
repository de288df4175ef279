package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Executors that know the key come in, are told and heard; strangers are shown out. */
@Timeout(60)
class DoorTest implements Door.Listener {
  private static final byte[] KEY = "0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.UTF_8);
  private static final Message HELLO = Message.of(new Message.Hello("1", "h2", "h2:9095"));

  private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();
  private final List<Socket> sockets = new ArrayList<>();
  private Door door;

  @Override
  public void joined(Door.Guest guest) {
    heard.add("joined " + guest.hello.executor());
  }

  @Override
  public void taken(Door.Guest guest, Message.Taken taken) {
    if (taken.broadcast() < 0) {
      throw new IllegalStateException("whoever listens fails");
    }
    heard.add("taken " + taken.broadcast() + " by " + guest.hello.executor());
  }

  @Override
  public void left(Door.Guest guest) {
    heard.add("left " + guest.hello.executor());
  }

  @BeforeEach
  void open() throws IOException {
    door = new Door(InetAddress.getLoopbackAddress(), KEY, this);
  }

  @AfterEach
  void close() throws IOException {
    for (Socket socket : sockets) {
      socket.close();
    }
    door.close();
  }

  @Test
  void anExecutorIsToldAndHeard() throws Exception {
    Sealed executor = connected(KEY);
    executor.write(HELLO.text());
    assertEquals("joined 1", heard.take());
    assertEquals(1, door.guests().size());
    for (long broadcast = 0; broadcast < 100; broadcast++) {
      door.guests().iterator().next().tell(Message.over(broadcast));
    }
    for (long broadcast = 0; broadcast < 100; broadcast++) {
      assertEquals(Message.over(broadcast), Message.read(executor.read()));
    }
    executor.write(Message.of(new Message.Taken(7, 1, 0, 10, 0, "")).text());
    assertEquals("taken 7 by 1", heard.take());
    sockets.get(0).close();
    assertEquals("left 1", heard.take());
    assertTrue(door.guests().isEmpty());
  }

  @Test
  void oneThatJoinsTwiceIsThereTwiceAndLeavesTwice() throws Exception {
    connected(KEY).write(HELLO.text());
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", heard.take());
    assertEquals("joined 1", heard.take());
    assertEquals(2, door.guests().size());
    sockets.get(0).close();
    assertEquals("left 1", heard.take());
    assertEquals(1, door.guests().size());
  }

  @Test
  void whoeverDoesNotKnowTheKeyIsShownOut() throws Exception {
    byte[] wrong = KEY.clone();
    wrong[0]++;
    Sealed stranger = connected(wrong);
    stranger.write(HELLO.text());
    assertNull(ended(stranger));
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", heard.take());
  }

  @Test
  void whoeverSaysSomethingElseFirstIsShownOut() throws Exception {
    for (String first : List.of("{\"over\":1}", "{}", "nonsense", "{\"hello\":{\"executor\":\"1\",\"host\":\"=\"}}")) {
      Sealed lines = connected(KEY);
      lines.write(first);
      assertNull(ended(lines));
    }
    assertTrue(heard.isEmpty());
  }

  @Test
  void nonsenseLaterEndsOneConnectionOnly() throws Exception {
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", heard.take());
    for (String later : List.of("nonsense", Message.of(new Message.Taken(-1, 0, 0, 0, 0, "")).text())) {
      Sealed lines = connected(KEY);
      lines.write(Message.of(new Message.Hello("2", "h2", "h2:9095")).text());
      assertEquals("joined 2", heard.take());
      lines.write(later);
      assertEquals("left 2", heard.take());
      assertNull(ended(lines));
    }
    assertEquals(1, door.guests().size());
  }

  @Test
  void strangersKeepNobodyOutForLong() throws Exception {
    // More than there are places, and one that says a byte now and then is as silent as the others.
    for (int stranger = 0; stranger < Door.MAX_STRANGERS + 8; stranger++) {
      sockets.add(new Socket(InetAddress.getLoopbackAddress(), door.port()));
    }
    Sealed executor = connected(KEY);
    executor.write(HELLO.text());
    assertEquals("joined 1", heard.take());
    byte[] rest = sockets.get(0).getInputStream().readAllBytes();
    assertEquals(Sealed.NONCE_BYTES, rest.length);
  }

  @Test
  void aByteNowAndThenWinsNoTime() throws Exception {
    Socket slow = new Socket(InetAddress.getLoopbackAddress(), door.port());
    sockets.add(slow);
    slow.setSoTimeout(Door.STRANGER_MILLIS / 10);
    int said = 0;
    int heardBytes = 0;
    while (heardBytes >= 0 && said < 1000) {
      try {
        heardBytes = slow.getInputStream().read();
      } catch (java.net.SocketTimeoutException silence) {
        slow.getOutputStream().write('x');
        said++;
      } catch (java.net.SocketException shownOut) {
        break;
      }
    }
    assertTrue(said < 100, "still there after " + said);
  }

  @Test
  void oneThatHearsNothingIsShownOutAndNobodyWaitsForIt() throws Exception {
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", heard.take());
    Door.Guest guest = door.guests().iterator().next();
    Message long1 = Message.of(new Announcement(1, "a/" + "x".repeat(60_000), 1, 1, 0, 1, false));
    for (int told = 0; !door.guests().isEmpty(); told++) {
      guest.tell(long1);
      assertTrue(told < 1_000_000);
    }
    assertEquals("left 1", heard.take());
  }

  @Test
  void whenItClosesAllAreOutside() throws Exception {
    Sealed executor = connected(KEY);
    executor.write(HELLO.text());
    assertEquals("joined 1", heard.take());
    door.close();
    assertNull(ended(executor));
    assertEquals("left 1", heard.take());
    assertThrows(IOException.class, () -> connected(KEY));
  }

  private Sealed connected(byte[] key) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), door.port());
    sockets.add(socket);
    byte[] nonce = new byte[Sealed.NONCE_BYTES];
    nonce[0] = (byte) sockets.size();
    return new Sealed(key, socket.getInputStream(), socket.getOutputStream(), nonce, false);
  }

  /** Null at its end, also where that came with a reset. */
  private static String ended(Sealed lines) {
    try {
      return lines.read();
    } catch (IOException reset) {
      return null;
    }
  }
}
