package org.blast.client;

import static org.blast.client.Arguments.needed;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.blast.DrainStatus;
import org.blast.ElementStatus;
import org.blast.Ended;
import org.blast.Event;
import org.blast.Explanation;
import org.blast.Extension;
import org.blast.FabricStatus;
import org.blast.FiberReport;
import org.blast.Grant;
import org.blast.JournalEntry;
import org.blast.MulticastRequest;
import org.blast.TimedOut;
import org.blast.ReconcileReport;
import org.blast.RequestFilter;
import org.blast.RequestPage;
import org.blast.RequestStatus;
import org.blast.TransferReport;
import org.blast.Version;

/**
 * The calls of {@link BlastClient} as futures, any number of them under way at once on one connection.
 *
 * <p>No method throws or waits: a future ends with the answer, with an exception of the interface ({@link
 * org.blast.Rejected}, …) or with a {@link BlastException}. Cancelling one forgets the call, which the controller may
 * carry out all the same. What depends on a future runs in a thread of the client, by which all answers come: do
 * nothing there that takes long, or use the methods of {@link CompletableFuture} that end in {@code Async}.
 */
public final class BlastAsyncClient {
  private final Calls calls;
  private final OpenToken guard;
  private final Set<CompletableFuture<?>> givingBack = ConcurrentHashMap.newKeySet();

  BlastAsyncClient(Calls calls, OpenToken guard) {
    this.calls = calls;
    this.guard = guard;
  }

  /**
   * Asks for a multicast and answers at once. The request stays until it is served, withdrawn or out of patience.
   *
   * @param request what is to be sent, under a key that the caller chooses
   * @return a future of the request as it is now
   */
  public CompletableFuture<RequestStatus> submit(MulticastRequest request) {
    return calls.make("submit", c -> c.send_submit(needed("request", request)), Codec::recv_submit);
  }

  /**
   * The first event of a request above a sequence number, as soon as there is one: {@link TimedOut} where none came in
   * time, {@link Ended} where none will come any more.
   *
   * @param key of the request
   * @param afterSequence 0 for the first event that there is
   * @param timeout how long the controller may wait for one
   * @return a future of the event
   */
  public CompletableFuture<Event> awaitEvent(String key, long afterSequence, Duration timeout) {
    return calls.make(
        "awaitEvent",
        timeout,
        (c, leftMs) -> c.send_awaitEvent(needed("key", key), afterSequence, leftMs),
        Codec::recv_awaitEvent);
  }

  /**
   * Asks for a multicast and waits for its first grant: {@link TimedOut} where none came in time. It then goes on waiting
   * until this client is closed, or asks again. When the future is cancelled it is withdrawn.
   *
   * @param request what is to be sent, under a key that the caller chooses
   * @param timeout how long the controller may wait for light
   * @return a future of the grant
   */
  public CompletableFuture<Grant> request(MulticastRequest request, Duration timeout) {
    // It may be sent again, and the caller may have changed it by then.
    MulticastRequest asked = request == null ? null : request.deepCopy();
    CompletableFuture<Grant> grant =
        calls.make(
            "request",
            timeout,
            (c, leftMs) -> c.send_request(needed("request", asked), leftMs),
            Codec::recv_request);
    grant.whenComplete(
        (answer, error) -> {
          if (error instanceof CancellationException) {
            GivingBack.abandon(this, asked);
          }
        });
    return grant;
  }

  /**
   * Changes a request's members, time or size; refused whole or done whole.
   *
   * @param key of the request
   * @param extension what is to change
   * @return a future of the request when the change is in force
   */
  public CompletableFuture<RequestStatus> extend(String key, Extension extension) {
    return calls.make(
        "extend", c -> c.send_extend(needed("key", key), needed("extension", extension)), Codec::recv_extend);
  }

  /**
   * Says that the transfer of a part is over: its resources go back. Twice is the same as once.
   *
   * @param key of the request
   * @param part as its grant says
   * @param report how it went, for the operator's statistics; or null
   * @return a future of the request as it is now
   */
  public CompletableFuture<RequestStatus> finish(String key, int part, TransferReport report) {
    return calls.make(
        "finish",
        c -> c.send_finish(needed("key", key), part, report == null ? new TransferReport() : report),
        Codec::recv_finish);
  }

  /**
   * Gives up a request, pending or active; its resources go back.
   *
   * @param key of the request
   * @return a future of the request as it is now
   */
  public CompletableFuture<RequestStatus> withdraw(String key) {
    return calls.make("withdraw", c -> c.send_withdraw(needed("key", key)), Codec::recv_withdraw);
  }

  /**
   * How far a request is; also after its end, as long as its key is remembered.
   *
   * @param key of the request
   * @return a future of the request as it is now
   */
  public CompletableFuture<RequestStatus> status(String key) {
    return calls.make("status", c -> c.send_status(needed("key", key)), Codec::recv_status);
  }

  /**
   * Some of the requests, in order of arrival.
   *
   * @param filter which ones; null: all
   * @param limit how many at most, between 1 and 1000
   * @param cursor where the page before ended; null: begin
   * @return a future of requests, and a cursor where there are more
   */
  public CompletableFuture<RequestPage> listRequests(RequestFilter filter, int limit, String cursor) {
    return calls.make(
        "listRequests",
        c -> c.send_listRequests(filter == null ? new RequestFilter() : filter, limit, cursor == null ? "" : cursor),
        Codec::recv_listRequests);
  }

  /**
   * What blocks a request.
   *
   * @param key of the request
   * @return a future of an explanation
   */
  public CompletableFuture<Explanation> explain(String key) {
    return calls.make("explain", c -> c.send_explain(needed("key", key)), Codec::recv_explain);
  }

  /**
   * Racks, splitters, switches and light trees as the controller sees them.
   *
   * @return a future of the fabric as it is now
   */
  public CompletableFuture<FabricStatus> fabric() {
    return calls.make("fabric", c -> c.send_fabric(), Codec::recv_fabric);
  }

  /**
   * What the controller is and which optional features it serves.
   *
   * @return a future of its version
   */
  public CompletableFuture<Version> version() {
    return calls.make("version", c -> c.send_version(), Codec::recv_version);
  }

  /**
   * Asks for a sign of life.
   *
   * @return a future that ends with nothing, when it has come
   */
  public CompletableFuture<Void> ping() {
    return calls.make("ping", c -> c.send_ping(), Codec::pinged);
  }

  /**
   * Says who this client is, on this connection and on those that replace it.
   *
   * @param token the secret that the operator gave
   * @return a future that ends with nothing, when the controller has taken it
   */
  public CompletableFuture<Void> login(String token) {
    try {
      needed("token", token);
      guard.refuse();
    } catch (WrongArgument | BadCredentials error) {
      return CompletableFuture.failedFuture(error);
    }
    // Until it is taken, a new connection must not begin with the one before.
    calls.token(null);
    CompletableFuture<Void> login = calls.make("login", c -> c.send_login(token), Codec::loggedIn);
    login.thenRun(() -> calls.token(token));
    return login;
  }

  // ---------------------------------------------------------------------------------------------- operators

  /**
   * Has the controller take no new requests, or take them again; what is active goes on.
   *
   * @param on null only asks
   * @return a future of how far it is
   */
  public CompletableFuture<DrainStatus> drain(Boolean on) {
    return calls.make("drain", on == null ? Codec::sendAskDrain : c -> c.send_drain(on), Codec::recv_drain);
  }

  /**
   * Compares what devices hold with what they should.
   *
   * @param dryRun whether what is wrong stays as it is
   * @return a future of what was found, and what was or would be done
   */
  public CompletableFuture<ReconcileReport> reconcile(boolean dryRun) {
    return calls.make("reconcile", c -> c.send_reconcile(dryRun), Codec::recv_reconcile);
  }

  /**
   * Checks the fibers against the config with probe frames.
   *
   * @return a future of the differences
   */
  public CompletableFuture<FiberReport> verifyFabric() {
    return calls.make("verifyFabric", c -> c.send_verifyFabric(), Codec::recv_verifyFabric);
  }

  /**
   * Every piece of hardware and its state.
   *
   * @return a future of the pieces
   */
  public CompletableFuture<List<ElementStatus>> elements() {
    return calls.make("elements", c -> c.send_elements(), Codec::recv_elements);
  }

  /**
   * Takes a piece of hardware out of use; what it serves now goes on.
   *
   * @param element as {@code elements} names it
   * @param reason in one sentence
   * @return a future that ends with nothing, when it is done
   */
  public CompletableFuture<Void> quarantine(String element, String reason) {
    return calls.make(
        "quarantine",
        c -> c.send_quarantine(needed("element", element), needed("reason", reason)),
        Codec::quarantined);
  }

  /**
   * Puts a piece of hardware back into use.
   *
   * @param element as {@code elements} names it
   * @return a future that ends with nothing, when it is done
   */
  public CompletableFuture<Void> releaseElement(String element) {
    return calls.make("releaseElement", c -> c.send_releaseElement(needed("element", element)), Codec::released);
  }

  /**
   * Lets a controller that is holding decide again; the warnings of {@code fabric} say whether and why it is.
   *
   * @return a future that ends with nothing, when it does
   */
  public CompletableFuture<Void> resume() {
    return calls.make("resume", c -> c.send_resume(), Codec::resumed);
  }

  /**
   * Reads the controller's journal.
   *
   * @param afterSequence 0 for its beginning
   * @param limit how many entries at most
   * @return a future of entries in order
   */
  public CompletableFuture<List<JournalEntry>> journal(long afterSequence, int limit) {
    return calls.make("journal", c -> c.send_journal(afterSequence, limit), Codec::recv_journal);
  }

  /** {@link #close} waits for it. */
  <A> CompletableFuture<A> givingBack(CompletableFuture<A> withdrawal) {
    givingBack.add(withdrawal);
    withdrawal.whenComplete((answer, error) -> givingBack.remove(withdrawal));
    return withdrawal;
  }

  void close() {
    if (!OwnThread.isCurrent()) {
      // Each takes a few seconds at most.
      CompletableFuture.allOf(givingBack.toArray(CompletableFuture[]::new)).exceptionally(told -> null).join();
    }
    calls.close();
  }
}
