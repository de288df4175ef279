package org.blast.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.blast.Blast;
import org.blast.BlastOperator;
import org.blast.Explanation;
import org.blast.FiberReport;
import org.blast.MulticastRequest;
import org.blast.NotLeader;
import org.blast.PartState;
import org.blast.ReconcileReport;
import org.blast.RequestStatus;
import org.blast.Version;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests with faulty servers and with clients that close during a call. */
@Timeout(30)
class FaultTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final Duration SHORT = Duration.ofMillis(300);

  private static BlastClient client(Duration timeout, String... addresses) {
    return BlastClient.builder().addresses(addresses).timeout(timeout).build();
  }

  private static RequestStatus status(String key) {
    return new RequestStatus(key, "default", PartState.ACTIVE, "a", List.of("b"), 1, 0, List.of(), 0);
  }

  private static Throwable failure(CompletableFuture<?> future) {
    return assertThrows(ExecutionException.class, () -> future.get(20, TimeUnit.SECONDS)).getCause();
  }

  // ----------------------------------------------------------------------------------------- invalid messages

  @ParameterizedTest
  @ValueSource(ints = {0, -1, (1 << 20) + 1, Integer.MAX_VALUE, Integer.MIN_VALUE})
  void clientRejectsFramesOfInvalidLength(int length) throws Exception {
    check(peer -> peer.out.write(java.nio.ByteBuffer.allocate(4).putInt(length).array()));
  }

  @Test
  void clientReportsAServerOfAnotherProtocol() throws Exception {
    check(peer -> peer.out.write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes(StandardCharsets.US_ASCII)));
    check(peer -> peer.frame("nonsense".getBytes(StandardCharsets.US_ASCII)));
    check(peer -> peer.frame(new byte[1000]));
  }

  @Test
  void clientRejectsAnswersToUnknownCalls() throws Exception {
    check(peer -> peer.answer(peer.next(), 77, new Blast.ping_result()));
    check(peer -> peer.answer(peer.next(), -1, new Blast.ping_result()));
  }

  private static void check(FakeServer.Behavior wrong) throws Exception {
    FakeServer.Behavior thenReads =
        peer -> {
          wrong.serve(peer);
          peer.listen();
        };
    try (FakeServer server = new FakeServer(thenReads);
        BlastClient client = client(LONG, server.address())) {
      ControllerUnreachable error = assertThrows(ControllerUnreachable.class, client::ping);
      assertTrue(error.getMessage().contains("does not speak Blast's protocol"), error.getMessage());
      assertTrue(error.getMessage().contains(server.address()), error.getMessage());
      assertEquals(2, server.connections.get(), "the client repeats the call once");
    }
  }

  @Test
  void truncatedFrameBreaksTheConnection() throws Exception {
    FakeServer.Behavior half =
        peer -> {
          peer.next();
          peer.out.write(new byte[] {0, 0, 1, 0, 1, 2, 3});
        };
    try (FakeServer server = new FakeServer(half);
        BlastClient client = client(LONG, server.address())) {
      ConnectionBroken error = assertThrows(ConnectionBroken.class, client::ping);
      assertTrue(error.getMessage().contains("does the controller require TLS"), error.getMessage());
    }
  }

  @Test
  void unreadableAnswerFailsOnlyItsCall() throws Exception {
    FakeServer.Behavior confused =
        peer -> {
          TMessage call = peer.next();
          byte[] whole =
              FakeServer.message(
                  new TMessage(call.name, TMessageType.REPLY, call.seqid),
                  new Blast.version_result().setSuccess(new Version("1", 1, List.of())));
          peer.frame(Arrays.copyOf(whole, whole.length - 9));
          peer.answerPings();
        };
    try (FakeServer server = new FakeServer(confused);
        BlastClient client = client(LONG, server.address())) {
      assertThrows(CallFailed.class, client::version);
      client.ping();
      assertEquals(1, server.connections.get());
    }
  }

  @Test
  void controllerFailureFailsOnlyItsCall() throws Exception {
    FakeServer.Behavior failing =
        peer -> {
          TMessage call = peer.next();
          TApplicationException failure = new TApplicationException(TApplicationException.INTERNAL_ERROR, "a bug");
          peer.frame(FakeServer.message(new TMessage(call.name, TMessageType.EXCEPTION, call.seqid), failure::write));
          peer.answerPings();
        };
    try (FakeServer server = new FakeServer(failing);
        BlastClient client = client(LONG, server.address())) {
      CallFailed error = assertThrows(CallFailed.class, client::fabric);
      assertTrue(error.getMessage().endsWith("a bug"), error.getMessage());
      client.ping();
    }
  }

  @Test
  void deviceMethodsReturnTheAnswersOfTheServer() throws Exception {
    List<String> calls = Collections.synchronizedList(new ArrayList<>());
    FakeServer.Behavior willing =
        peer -> {
          while (true) {
            TMessage call = peer.next();
            calls.add(call.name);
            peer.answer(
                call,
                switch (call.name) {
                  case "reconcile" -> new BlastOperator.reconcile_result()
                      .setSuccess(new ReconcileReport(true, List.of("a command"), List.of()));
                  case "verifyFabric" -> new BlastOperator.verifyFabric_result()
                      .setSuccess(new FiberReport(List.of(), List.of("port:r1/1: away")));
                  case "explain" -> new Blast.explain_result().setSuccess(new Explanation("k", "it waits"));
                  default -> new BlastOperator.resume_result();
                });
          }
        };
    try (FakeServer server = new FakeServer(willing);
        BlastClient client = client(LONG, server.address())) {
      assertEquals(List.of("a command"), client.reconcile(true).commands);
      assertEquals(List.of("port:r1/1: away"), client.verifyFabric().skipped);
      assertEquals("it waits", client.explain("k").message);
      client.resume();
      assertEquals(List.of("reconcile", "verifyFabric", "explain", "resume"), calls);
    }
  }

  // --------------------------------------------------------------------------------------------- order and time

  @Test
  void clientMatchesAnswersInAnyOrder() throws Exception {
    FakeServer.Behavior backwards =
        peer -> {
          List<TMessage> calls = new ArrayList<>(List.of(peer.next(), peer.next(), peer.next()));
          Collections.reverse(calls);
          for (TMessage call : calls) {
            peer.answer(call, new Blast.status_result().setSuccess(status("of " + call.seqid)));
          }
          peer.listen();
        };
    try (FakeServer server = new FakeServer(backwards);
        BlastClient client = client(LONG, server.address())) {
      List<CompletableFuture<RequestStatus>> pending =
          List.of(client.async().status("1"), client.async().status("2"), client.async().status("3"));
      for (int number = 0; number < 3; number++) {
        assertEquals("of " + (number + 1), pending.get(number).get().key);
      }
    }
  }

  @Test
  void clientDisconnectsFromASilentServer() throws Exception {
    CountDownLatch left = new CountDownLatch(1);
    FakeServer.Behavior silent =
        peer -> {
          peer.listen();
          left.countDown();
        };
    try (FakeServer server = new FakeServer(silent);
        BlastClient client = client(SHORT, server.address())) {
      NoAnswerInTime error = assertThrows(NoAnswerInTime.class, client::ping);
      assertTrue(error.getMessage().contains("0.300 s"), error.getMessage());
      assertTrue(left.await(20, TimeUnit.SECONDS));
    }
  }

  @Test
  void clientConnectsToTheNextAddressAfterATimeout() throws Exception {
    try (FakeServer silent = new FakeServer(FakeServer.Peer::listen);
        FakeServer lively = new FakeServer(FakeServer.Peer::answerPings);
        BlastClient client = client(SHORT, silent.address(), lively.address())) {
      CompletableFuture<?> waits = client.async().awaitEvent("k", 0, LONG);
      assertThrows(NoAnswerInTime.class, client::ping);
      client.ping();
      assertEquals(1, lively.connections.get());
      waits.cancel(false);
    }
  }

  @Test
  void clientDropsLateAnswers() throws Exception {
    FakeServer.Behavior late =
        peer -> {
          TMessage forgotten = peer.next();
          TMessage second = peer.next();
          peer.ping(second);
          TMessage third = peer.next();
          peer.ping(forgotten);
          peer.ping(forgotten);
          peer.ping(third);
          peer.answerPings();
        };
    try (FakeServer server = new FakeServer(late);
        BlastClient client = client(Duration.ofSeconds(2), server.address())) {
      CompletableFuture<Void> forgotten = client.async().ping();
      client.ping();
      assertInstanceOf(NoAnswerInTime.class, failure(forgotten));
      client.ping();
      client.ping();
      assertEquals(1, server.connections.get());
    }
  }

  @Test
  void callsFailWhenTheServerDoesNotRead() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    try (FakeServer server = new FakeServer(peer -> end.await());
        BlastClient client = client(Duration.ofSeconds(2), server.address())) {
      MulticastRequest wide = new MulticastRequest("k", "a", Collections.nCopies(100_000, "host-1"), 1);
      List<CompletableFuture<RequestStatus>> pending = new ArrayList<>();
      for (int number = 0; number < 20; number++) {
        pending.add(client.async().submit(wide));
      }
      for (CompletableFuture<RequestStatus> one : pending) {
        assertInstanceOf(ControllerUnreachable.class, failure(one));
      }
      end.countDown();
    }
  }

  // ------------------------------------------------------------------------------------------ several addresses

  @Test
  void clientUsesTheFirstAddressThatAnswers() throws Exception {
    try (FakeServer server = new FakeServer(FakeServer.Peer::answerPings);
        BlastClient client = client(LONG, FakeServer.unusedAddress(), server.address())) {
      client.ping();
    }
  }

  @Test
  void errorNamesAllAddressesWithoutAnAnswer() throws Exception {
    String one = FakeServer.unusedAddress();
    String other = FakeServer.unusedAddress();
    try (BlastClient client = client(LONG, one, other)) {
      ControllerUnreachable error = assertThrows(ControllerUnreachable.class, () -> client.withdraw("k"));
      String expected = "no answer from a controller at " + one + " (Connection refused), " + other + " (Conn";
      assertTrue(error.getMessage().startsWith(expected), error.getMessage());
    }
  }

  @Test
  void clientFollowsAStandbyToTheLeader() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    FakeServer.Behavior answerAsLeader =
        peer -> {
          while (true) {
            TMessage call = peer.next();
            calls.incrementAndGet();
            peer.answer(call, new Blast.withdraw_result().setSuccess(status("k")));
          }
        };
    try (FakeServer leader = new FakeServer(answerAsLeader);
        FakeServer standby = new FakeServer(peer -> actAsStandby(peer, leader.address()));
        FakeServer other = new FakeServer(FakeServer.Peer::listen);
        BlastClient client = client(LONG, standby.address(), other.address(), leader.address())) {
      assertEquals("k", client.withdraw("k").key);
      assertEquals("k", client.withdraw("k").key);
      assertEquals(2, calls.get());
      assertEquals(1, standby.connections.get());
      assertEquals(0, other.connections.get());
    }
  }

  private static void actAsStandby(FakeServer.Peer peer, String leader) throws IOException, TException {
    while (true) {
      TMessage call = peer.next();
      peer.answer(call, new Blast.withdraw_result().setNotLeader(new NotLeader().setAddress(leader)));
    }
  }

  @Test
  void errorReportsThatAllControllersAreStandbys() throws Exception {
    try (FakeServer one = new FakeServer(peer -> actAsStandby(peer, null));
        FakeServer other = new FakeServer(peer -> actAsStandby(peer, "no address: at all"));
        BlastClient client = client(LONG, one.address(), other.address());
        BlastClient ofOne = client(LONG, other.address())) {
      ControllerUnreachable error = assertThrows(ControllerUnreachable.class, () -> client.withdraw("k"));
      assertEquals(2, error.getMessage().split("a standby", -1).length - 1, error.getMessage());
      NotLeader answer = assertThrows(NotLeader.class, () -> ofOne.withdraw("k"));
      assertEquals("no address: at all", answer.address);
    }
  }

  // ----------------------------------------------------------------------------------------------- broken calls

  @Test
  void clientRepeatsOnlyIdempotentCalls() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    FakeServer.Behavior fragile =
        peer -> {
          peer.ping(peer.next());
          if (peer.next().name.equals("withdraw")) {
            calls.incrementAndGet();
          }
        };
    try (FakeServer server = new FakeServer(fragile);
        BlastClient client = client(LONG, server.address())) {
      client.ping();
      ConnectionBroken error = assertThrows(ConnectionBroken.class, () -> client.withdraw("k"));
      assertTrue(error.getMessage().contains("the connection broke)"), error.getMessage());
      assertEquals(1, calls.get());
      client.ping();
      client.ping();
      assertEquals(3, server.connections.get());
    }
  }

  // ------------------------------------------------------------------------------------------- closed clients

  @Test
  void closeFailsAllPendingCalls() throws Exception {
    try (FakeServer server = new FakeServer(FakeServer.Peer::listen)) {
      int before = clientThreads();
      BlastClient client = client(LONG, server.address());
      CompletableFuture<?> waits = client.async().awaitEvent("k", 0, LONG);
      CompletableFuture<?> waitsToo = client.async().ping();
      client.close();
      assertInstanceOf(ClientClosed.class, failure(waits));
      assertInstanceOf(ClientClosed.class, failure(waitsToo));
      assertThrows(ClientClosed.class, client::ping);
      while (clientThreads() > before) {
        // The threads end soon after close(); otherwise the test times out.
        Thread.onSpinWait();
      }
      client.close();
    }
  }

  @Test
  void closeFailsACallThatIsConnecting() throws Exception {
    try (FakeServer server = new FakeServer(FakeServer.Peer::listen)) {
      BlastClient client =
          BlastClient.builder().addresses(server.address()).token("t".repeat(40)).timeout(LONG).build();
      CompletableFuture<?> waits = client.async().ping();
      client.close();
      assertInstanceOf(ClientClosed.class, failure(waits));
    }
  }

  private static int clientThreads() {
    return (int) Thread.getAllStackTraces().keySet().stream().filter(ClientThread.class::isInstance).count();
  }

  @Test
  void canceledCallFreesItsPlace() throws Exception {
    FakeServer.Behavior late =
        peer -> {
          TMessage forgotten = peer.next();
          TMessage second = peer.next();
          peer.ping(forgotten);
          peer.ping(second);
          peer.listen();
        };
    try (FakeServer server = new FakeServer(late);
        BlastClient client =
            BlastClient.builder().addresses(server.address()).timeout(LONG).maxCalls(1).build()) {
      CompletableFuture<Void> forgotten = client.async().ping();
      while (server.connections.get() == 0) {
        Thread.onSpinWait();
      }
      assertThrows(TooManyCalls.class, client::ping);
      Thread.sleep(100); // The call must be sent before it is canceled, and no event reports that.
      forgotten.cancel(true);
      client.ping();
      assertEquals(1, server.connections.get());
    }
  }

  @Test
  void blockingCallInAClientThreadIsRejected() throws Exception {
    CountDownLatch ready = new CountDownLatch(1);
    FakeServer.Behavior waits =
        peer -> {
          TMessage first = peer.next();
          ready.await();
          peer.ping(first);
          peer.answerPings();
        };
    try (FakeServer server = new FakeServer(waits);
        BlastClient client = client(LONG, server.address())) {
      CompletableFuture<Void> first = client.async().ping();
      CompletableFuture<Void> wrong = first.thenRun(client::ping);
      CompletableFuture<Void> right = first.thenRunAsync(client::ping);
      ready.countDown();
      assertInstanceOf(IllegalStateException.class, failure(wrong));
      right.get(20, TimeUnit.SECONDS);
    }
  }
}
