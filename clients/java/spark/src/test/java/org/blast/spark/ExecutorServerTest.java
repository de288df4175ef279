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

/** Tests that the server serves executors that know the key, and disconnects other clients. */
@Timeout(60)
class ExecutorServerTest implements ExecutorServer.Listener {
  private static final byte[] KEY = "0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.UTF_8);
  private static final Message HELLO = Message.of(new Message.Hello("1", "h2", "h2:9095"));

  private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
  private final List<Socket> sockets = new ArrayList<>();
  private ExecutorServer server;

  @Override
  public void joined(ExecutorServer.Peer peer) {
    events.add("joined " + peer.hello.executor());
  }

  @Override
  public void taken(ExecutorServer.Peer peer, Message.Taken taken) {
    if (taken.broadcast() < 0) {
      throw new IllegalStateException("the listener fails");
    }
    events.add("taken " + taken.broadcast() + " by " + peer.hello.executor());
  }

  @Override
  public void left(ExecutorServer.Peer peer) {
    events.add("left " + peer.hello.executor());
  }

  @BeforeEach
  void open() throws IOException {
    server = new ExecutorServer(InetAddress.getLoopbackAddress(), KEY, this);
  }

  @AfterEach
  void close() throws IOException {
    for (Socket socket : sockets) {
      socket.close();
    }
    server.close();
  }

  @Test
  void executorReceivesAndSendsMessages() throws Exception {
    AuthenticatedLines executor = connected(KEY);
    executor.write(HELLO.text());
    assertEquals("joined 1", events.take());
    assertEquals(1, server.peers().size());
    for (long broadcast = 0; broadcast < 100; broadcast++) {
      server.peers().iterator().next().send(Message.over(broadcast));
    }
    for (long broadcast = 0; broadcast < 100; broadcast++) {
      assertEquals(Message.over(broadcast), Message.read(executor.read()));
    }
    executor.write(Message.of(new Message.Taken(7, 1, 0, 10, 0, "")).text());
    assertEquals("taken 7 by 1", events.take());
    sockets.get(0).close();
    assertEquals("left 1", events.take());
    assertTrue(server.peers().isEmpty());
  }

  @Test
  void executorThatJoinsTwiceHasTwoConnections() throws Exception {
    connected(KEY).write(HELLO.text());
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", events.take());
    assertEquals("joined 1", events.take());
    assertEquals(2, server.peers().size());
    sockets.get(0).close();
    assertEquals("left 1", events.take());
    assertEquals(1, server.peers().size());
  }

  @Test
  void serverDisconnectsAClientWithAWrongKey() throws Exception {
    byte[] wrong = KEY.clone();
    wrong[0]++;
    AuthenticatedLines unauthenticated = connected(wrong);
    unauthenticated.write(HELLO.text());
    assertNull(ended(unauthenticated));
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", events.take());
  }

  @Test
  void serverDisconnectsAClientWithoutAHello() throws Exception {
    for (String first : List.of("{\"over\":1}", "{}", "nonsense", "{\"hello\":{\"executor\":\"1\",\"host\":\"=\"}}")) {
      AuthenticatedLines lines = connected(KEY);
      lines.write(first);
      assertNull(ended(lines));
    }
    assertTrue(events.isEmpty());
  }

  @Test
  void invalidMessageEndsOneConnectionOnly() throws Exception {
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", events.take());
    for (String later : List.of("nonsense", Message.of(new Message.Taken(-1, 0, 0, 0, 0, "")).text())) {
      AuthenticatedLines lines = connected(KEY);
      lines.write(Message.of(new Message.Hello("2", "h2", "h2:9095")).text());
      assertEquals("joined 2", events.take());
      lines.write(later);
      assertEquals("left 2", events.take());
      assertNull(ended(lines));
    }
    assertEquals(1, server.peers().size());
  }

  @Test
  void executorConnectsDespiteManyUnauthenticatedClients() throws Exception {
    // More idle connections than the server allows without authentication.
    for (int number = 0; number < ExecutorServer.MAX_UNAUTHENTICATED + 8; number++) {
      sockets.add(new Socket(InetAddress.getLoopbackAddress(), server.port()));
    }
    AuthenticatedLines executor = connected(KEY);
    executor.write(HELLO.text());
    assertEquals("joined 1", events.take());
    byte[] rest = sockets.get(0).getInputStream().readAllBytes();
    assertEquals(AuthenticatedLines.NONCE_BYTES, rest.length);
  }

  @Test
  void slowBytesDoNotExtendTheAuthenticationTimeout() throws Exception {
    Socket slow = new Socket(InetAddress.getLoopbackAddress(), server.port());
    sockets.add(slow);
    slow.setSoTimeout(ExecutorServer.AUTHENTICATION_MILLIS / 10);
    int sent = 0;
    int lastByte = 0;
    while (lastByte >= 0 && sent < 1000) {
      try {
        lastByte = slow.getInputStream().read();
      } catch (java.net.SocketTimeoutException silence) {
        slow.getOutputStream().write('x');
        sent++;
      } catch (java.net.SocketException disconnected) {
        break;
      }
    }
    assertTrue(sent < 100, "still there after " + sent);
  }

  @Test
  void serverDisconnectsAnExecutorThatDoesNotRead() throws Exception {
    connected(KEY).write(HELLO.text());
    assertEquals("joined 1", events.take());
    ExecutorServer.Peer peer = server.peers().iterator().next();
    Message large = Message.of(new Announcement(1, "a/" + "x".repeat(60_000), 1, 1, 0, 1, false));
    for (int sent = 0; !server.peers().isEmpty(); sent++) {
      peer.send(large);
      assertTrue(sent < 1_000_000);
    }
    assertEquals("left 1", events.take());
  }

  @Test
  void closeDisconnectsAllExecutors() throws Exception {
    AuthenticatedLines executor = connected(KEY);
    executor.write(HELLO.text());
    assertEquals("joined 1", events.take());
    server.close();
    assertNull(ended(executor));
    assertEquals("left 1", events.take());
    assertThrows(IOException.class, () -> connected(KEY));
  }

  private AuthenticatedLines connected(byte[] key) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
    sockets.add(socket);
    byte[] nonce = new byte[AuthenticatedLines.NONCE_BYTES];
    nonce[0] = (byte) sockets.size();
    return new AuthenticatedLines(key, socket.getInputStream(), socket.getOutputStream(), nonce, false);
  }

  /** Read until the end of the connection. Return null, also after a reset. */
  private static String ended(AuthenticatedLines lines) {
    try {
      return lines.read();
    } catch (IOException reset) {
      return null;
    }
  }
}
