package org.blast.client;

import static org.blast.client.RealController.request;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.apache.thrift.TException;
import org.blast.Ended;
import org.blast.Event;
import org.blast.EventKind;
import org.blast.Extension;
import org.blast.Grant;
import org.blast.KeyReused;
import org.blast.MulticastRequest;
import org.blast.TimedOut;
import org.blast.PartState;
import org.blast.Rejected;
import org.blast.RequestFilter;
import org.blast.RequestPage;
import org.blast.UnknownRequest;
import org.blast.Unsupported;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;

/** Tests of every method with the real server. */
@Timeout(60)
class DialogueTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final Duration SOON = Duration.ofMillis(50);
  private BlastClient client;
  private String key;

  @BeforeEach
  void connect(TestInfo test) throws IOException {
    client = RealController.shared().client();
    key = test.getDisplayName().replace("()", "");
  }

  @AfterEach
  void withdrawRequests() throws TException {
    for (var status : client.listRequests(null, 1000, null).requests) {
      try {
        client.withdraw(status.key);
      } catch (Ended over) {
        // The request has ended already.
      }
    }
    client.close();
  }

  @Test
  void requestIsSubmittedGrantedExtendedAndFinished() throws TException {
    client.ping();
    assertEquals(1, client.version().protocol);
    assertEquals(key, client.submit(request(key)).key);
    assertEquals(key, client.submit(request(key)).key);
    Event granted = client.awaitEvent(key, 0, TIMEOUT);
    assertEquals(EventKind.GRANTED, granted.kind);
    assertTrue(granted.grant.groupAddress.startsWith("239."));
    assertEquals(List.of("r2h1", "r3h1"), granted.grant.receivers);
    assertEquals(List.of("r2h1", "r3h1", "r2h2"), receiversWith("r2h2"));
    assertEquals(PartState.DONE, client.finish(key, 0, null).state);
    assertEquals(PartState.DONE, client.status(key).state);
    long latest = client.status(key).latestSequence;
    assertThrows(Ended.class, () -> client.awaitEvent(key, latest, TIMEOUT));
    assertThrows(Ended.class, () -> client.withdraw(key));
  }

  private List<String> receiversWith(String host) throws TException {
    return client.extend(key, new Extension().setAddReceivers(List.of(host))).receivers;
  }

  @Test
  void clientThrowsTheErrorsOfTheController() throws TException {
    MulticastRequest unknownHost = new MulticastRequest(key, "r1h1", List.of("no-such-host"), 1);
    Rejected rejected = assertThrows(Rejected.class, () -> client.submit(unknownHost));
    assertEquals("unknown_host", rejected.code);
    assertEquals(rejected.message, ErrorMessages.of(rejected));
    assertEquals(DialogueTest.class.getName(), firstTestClass(rejected), "the trace names the caller");
    assertThrows(UnknownRequest.class, () -> client.status("no-such-request"));
    client.submit(request(key));
    assertThrows(KeyReused.class, () -> client.submit(request(key).setBytes(7)));
    assertThrows(Unsupported.class, () -> client.submit(request(key + "-2").setTenant("other")));
  }

  private static String firstTestClass(Throwable error) {
    return List.of(error.getStackTrace()).stream()
        .map(StackTraceElement::getClassName)
        .filter(name -> name.endsWith("Test"))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void awaitEventThrowsTimedOutWhileNoEventExists() throws TException {
    client.submit(request(key + "-lit", 1));
    client.submit(request(key, 1));
    TimedOut timedOut = assertThrows(TimedOut.class, () -> client.awaitEvent(key, 0, SOON));
    assertEquals(ErrorMessages.of(timedOut), timedOut.getMessage());
    assertTrue(ErrorMessages.of(timedOut).startsWith("not yet: "));
    assertThrows(TimedOut.class, () -> client.awaitEvent(key, 0, Duration.ZERO));
  }

  @Test
  void listRequestsReturnsPages() throws TException {
    client.submit(request(key + "-1"));
    client.submit(request(key + "-2"));
    RequestFilter active =
        new RequestFilter().setStates(List.of(PartState.ACTIVE, PartState.PENDING, PartState.CONFIGURING));
    RequestPage first = client.listRequests(active, 1, null);
    RequestPage second = client.listRequests(active, 1, first.nextCursor);
    assertEquals(key + "-1", first.requests.get(0).key);
    assertEquals(key + "-2", second.requests.get(0).key);
  }

  @Test
  void operatorMethodsReturnTheState() throws TException {
    assertFalse(client.drain(null).draining);
    assertTrue(client.drain(true).draining);
    assertTrue(client.drain(null).draining);
    assertFalse(client.drain(false).draining);
    assertEquals(6, client.fabric().racks.size());
    assertTrue(client.elements().stream().anyMatch(element -> element.name.equals("splitter:s1")));
    client.quarantine("splitter:s1", "its lid is open");
    client.releaseElement("splitter:s1");
    assertFalse(client.journal(0, 10).isEmpty());
    assertThrows(TException.class, () -> client.explain("no-such-request"));
    assertThrows(Unsupported.class, () -> client.login("a token"));
    client.ping();
  }

  @Test
  void finishedGrantLeavesTheRequestDone() throws TException {
    try (Granted granted = client.granted(request(key), TIMEOUT)) {
      assertEquals(key, granted.grant().key);
      granted.finish();
    }
    assertEquals(PartState.DONE, client.status(key).state);
  }

  @Test
  void grantIsWithdrawnAfterAnException() throws TException {
    assertThrows(
        ArithmeticException.class,
        () -> {
          try (Granted granted = client.granted(request(key), TIMEOUT)) {
            throw new ArithmeticException(granted.grant().key);
          }
        });
    assertEquals(PartState.WITHDRAWN, client.status(key).state);
  }

  @Test
  void requestIsWithdrawnWhenItsGrantTimesOut() throws TException {
    client.submit(request(key + "-lit", 1));
    assertThrows(TimedOut.class, () -> client.granted(request(key, 1), SOON));
    assertEquals(PartState.WITHDRAWN, client.status(key).state);
  }

  @Test
  void canceledFutureWithdrawsTheRequest() throws Exception {
    client.submit(request(key + "-lit", 1));
    var grant = client.async().request(request(key, 1), TIMEOUT);
    client.ping();
    long before = System.nanoTime();
    grant.cancel(false);
    while (client.status(key).state != PartState.WITHDRAWN) {
      assertTrue(System.nanoTime() - before < TIMEOUT.toNanos());
    }
  }

  @Test
  void interruptedCallThrowsCallInterrupted() throws Exception {
    client.submit(request(key + "-lit", 1));
    client.submit(request(key, 1));
    Thread.currentThread().interrupt();
    assertThrows(CallInterrupted.class, () -> client.awaitEvent(key, 0, TIMEOUT));
    assertTrue(Thread.interrupted());
    client.ping();
  }

  @Test
  void closeWithdrawsAnInterruptedRequest() throws Exception {
    client.submit(request(key + "-lit", 1));
    BlastClient other = RealController.shared().client();
    other.ping();
    Thread.currentThread().interrupt();
    assertThrows(CallInterrupted.class, () -> other.request(request(key, 1), TIMEOUT));
    other.close();
    assertTrue(Thread.interrupted());
    // If the interrupt came before the request was sent, the request does not exist.
    try {
      assertEquals(PartState.WITHDRAWN, client.status(key).state);
    } catch (UnknownRequest never) {
      assertEquals(key, never.key);
    }
  }

  @Test
  void clientRejectsOversizedCallsAndMissingArguments() throws TException {
    List<String> many = Collections.nCopies(1 << 17, "r2h1-r2h1");
    MulticastRequest wide = new MulticastRequest(key, "r1h1", many, 1);
    WrongArgument error = assertThrows(WrongArgument.class, () -> client.submit(wide));
    assertTrue(error.getMessage().contains("do not fit into one call"), error.getMessage());
    assertThrows(WrongArgument.class, () -> client.status(null));
    assertThrows(WrongArgument.class, () -> client.submit(null));
    assertThrows(WrongArgument.class, () -> client.submit(new MulticastRequest()));
    assertThrows(WrongArgument.class, () -> client.request(null, TIMEOUT));
    assertThrows(WrongArgument.class, () -> client.login(null));
    assertThrows(WrongArgument.class, () -> client.awaitEvent(key, 0, Duration.ofSeconds(-1)));
    assertThrows(WrongArgument.class, () -> client.awaitEvent(key, 0, Duration.ofSeconds(Long.MAX_VALUE)));
    client.ping();
  }

  @Test
  void fiveHundredWaitingCallsUseFewThreads() throws Exception {
    client.submit(request(key + "-lit", 1));
    client.submit(request(key, 1));
    int before = Thread.getAllStackTraces().size();
    List<CompletableFuture<Event>> waiting =
        IntStream.range(0, 500)
            .mapToObj(number -> client.async().awaitEvent(key, 0, TIMEOUT))
            .toList();
    client.ping();
    assertTrue(Thread.getAllStackTraces().size() < before + 20);
    assertTrue(waiting.stream().noneMatch(CompletableFuture::isDone));
    client.finish(key + "-lit", 0, null);
    for (var event : waiting) {
      assertEquals(EventKind.GRANTED, event.get().kind);
    }
    Grant grant = waiting.get(0).get().grant;
    assertEquals(key, grant.key);
  }
}
