package org.blast.client;

import static org.blast.client.Arguments.require;

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
 * A client of the controller with the calls of {@link BlastClient} as futures, which share one connection.
 *
 * <p>No method throws or blocks: a future completes with the answer, with an exception of the interface ({@link
 * org.blast.Rejected}, …) or with a {@link BlastException}. Canceling a future drops its answer; the controller may
 * still execute the call. Stages that depend on a future run in the client's receiving thread. They must not block:
 * use the methods of {@link CompletableFuture} that end in {@code Async} for longer work.
 */
public final class BlastAsyncClient {
  private final Calls calls;
  private final TokenGuard guard;
  private final Set<CompletableFuture<?>> withdrawals = ConcurrentHashMap.newKeySet();

  BlastAsyncClient(Calls calls, TokenGuard guard) {
    this.calls = calls;
    this.guard = guard;
  }

  /**
   * Submits a multicast request without waiting for a grant. The request stays until it is served, withdrawn or
   * expired.
   *
   * @param request sender, receivers and size, under a key that the caller chooses
   * @return a future of the current status of the request
   */
  public CompletableFuture<RequestStatus> submit(MulticastRequest request) {
    return calls.make("submit", c -> c.send_submit(require("request", request)), Codec::recv_submit);
  }

  /**
   * Waits for the first event of a request above a sequence number. Throws {@link TimedOut} if the timeout passes first
   * and {@link Ended} if no event will follow.
   *
   * @param key key of the request
   * @param afterSequence sequence number of the last event seen; 0 for the first event
   * @param timeout maximum time that the controller waits for an event
   * @return a future of the event
   */
  public CompletableFuture<Event> awaitEvent(String key, long afterSequence, Duration timeout) {
    return calls.make(
        "awaitEvent",
        timeout,
        (c, leftMs) -> c.send_awaitEvent(require("key", key), afterSequence, leftMs),
        Codec::recv_awaitEvent);
  }

  /**
   * Submits a multicast request and waits for its first grant. After {@link TimedOut}, the request stays pending until
   * this client closes or repeats the call. Canceling the future withdraws the request.
   *
   * @param request sender, receivers and size, under a key that the caller chooses
   * @param timeout maximum time that the controller waits for a grant
   * @return a future of the grant
   */
  public CompletableFuture<Grant> request(MulticastRequest request, Duration timeout) {
    // A copy: the call may be repeated after the caller has changed the request.
    MulticastRequest submitted = request == null ? null : request.deepCopy();
    CompletableFuture<Grant> grant =
        calls.make(
            "request",
            timeout,
            (c, leftMs) -> c.send_request(require("request", submitted), leftMs),
            Codec::recv_request);
    grant.whenComplete(
        (answer, error) -> {
          if (error instanceof CancellationException) {
            Withdrawals.withdrawIfSubmitted(this, submitted);
          }
        });
    return grant;
  }

  /**
   * Changes the members, the lease or the size of a request. The controller applies all changes or none.
   *
   * @param key key of the request
   * @param extension the changes
   * @return a future of the status of the request once the change is in effect
   */
  public CompletableFuture<RequestStatus> extend(String key, Extension extension) {
    return calls.make(
        "extend", c -> c.send_extend(require("key", key), require("extension", extension)), Codec::recv_extend);
  }

  /**
   * Reports that the transfer of a part is complete, which releases its resources. A second call has no effect.
   *
   * @param key key of the request
   * @param part number of the part, from its grant
   * @param report the result, for the operator's statistics; null to report nothing
   * @return a future of the current status of the request
   */
  public CompletableFuture<RequestStatus> finish(String key, int part, TransferReport report) {
    return calls.make(
        "finish",
        c -> c.send_finish(require("key", key), part, report == null ? new TransferReport() : report),
        Codec::recv_finish);
  }

  /**
   * Withdraws a pending or active request, which releases its resources.
   *
   * @param key key of the request
   * @return a future of the current status of the request
   */
  public CompletableFuture<RequestStatus> withdraw(String key) {
    return calls.make("withdraw", c -> c.send_withdraw(require("key", key)), Codec::recv_withdraw);
  }

  /**
   * Returns the status of a request, also after its end until the controller forgets its key.
   *
   * @param key key of the request
   * @return a future of the current status of the request
   */
  public CompletableFuture<RequestStatus> status(String key) {
    return calls.make("status", c -> c.send_status(require("key", key)), Codec::recv_status);
  }

  /**
   * Returns one page of the requests, in order of arrival.
   *
   * @param filter which requests to return; null for all
   * @param limit maximum number of requests, 1 to 1000
   * @param cursor cursor of the previous page; null for the first page
   * @return a future of the requests, with a cursor if more follow
   */
  public CompletableFuture<RequestPage> listRequests(RequestFilter filter, int limit, String cursor) {
    return calls.make(
        "listRequests",
        c -> c.send_listRequests(filter == null ? new RequestFilter() : filter, limit, cursor == null ? "" : cursor),
        Codec::recv_listRequests);
  }

  /**
   * Explains why a request waits.
   *
   * @param key key of the request
   * @return a future of the explanation
   */
  public CompletableFuture<Explanation> explain(String key) {
    return calls.make("explain", c -> c.send_explain(require("key", key)), Codec::recv_explain);
  }

  /**
   * Returns the racks, splitters, switches and light trees as the controller sees them.
   *
   * @return a future of the current state of the fabric
   */
  public CompletableFuture<FabricStatus> fabric() {
    return calls.make("fabric", c -> c.send_fabric(), Codec::recv_fabric);
  }

  /**
   * Returns the version of the controller and the optional features that it serves.
   *
   * @return a future of the version
   */
  public CompletableFuture<Version> version() {
    return calls.make("version", c -> c.send_version(), Codec::recv_version);
  }

  /**
   * Checks that the controller answers.
   *
   * @return a future that completes when the answer arrives
   */
  public CompletableFuture<Void> ping() {
    return calls.make("ping", c -> c.send_ping(), Codec::pinged);
  }

  /**
   * Authenticates this client, on this connection and on later connections.
   *
   * @param token secret that the operator issued
   * @return a future that completes when the controller has accepted the token
   */
  public CompletableFuture<Void> login(String token) {
    try {
      require("token", token);
      guard.check();
    } catch (WrongArgument | BadCredentials error) {
      return CompletableFuture.failedFuture(error);
    }
    // A connection that opens before the controller accepts this token must not log in with the previous one.
    calls.token(null);
    CompletableFuture<Void> login = calls.make("login", c -> c.send_login(token), Codec::loggedIn);
    login.thenRun(() -> calls.token(token));
    return login;
  }

  // ---------------------------------------------------------------------------------------------- operators

  /**
   * Starts or stops a drain: a draining controller admits no new requests, and active requests continue.
   *
   * @param on true to drain, false to admit requests again, null to query the state
   * @return a future of the progress of the drain
   */
  public CompletableFuture<DrainStatus> drain(Boolean on) {
    return calls.make("drain", on == null ? Codec::sendDrainQuery : c -> c.send_drain(on), Codec::recv_drain);
  }

  /**
   * Compares the state of the devices with the journal and repairs the differences.
   *
   * @param dryRun true to report differences without repairing them
   * @return a future of the differences and of the repairs, done or planned
   */
  public CompletableFuture<ReconcileReport> reconcile(boolean dryRun) {
    return calls.make("reconcile", c -> c.send_reconcile(dryRun), Codec::recv_reconcile);
  }

  /**
   * Verifies the fibers of the configuration with probe frames.
   *
   * @return a future of the differences
   */
  public CompletableFuture<FiberReport> verifyFabric() {
    return calls.make("verifyFabric", c -> c.send_verifyFabric(), Codec::recv_verifyFabric);
  }

  /**
   * Returns every element of the hardware and its state.
   *
   * @return a future of the elements
   */
  public CompletableFuture<List<ElementStatus>> elements() {
    return calls.make("elements", c -> c.send_elements(), Codec::recv_elements);
  }

  /**
   * Takes an element out of use. Transfers that use it now continue.
   *
   * @param element name of the element, as {@code elements} returns it
   * @param reason one sentence for the operators
   * @return a future that completes when the element has changed state
   */
  public CompletableFuture<Void> quarantine(String element, String reason) {
    return calls.make(
        "quarantine",
        c -> c.send_quarantine(require("element", element), require("reason", reason)),
        Codec::quarantined);
  }

  /**
   * Returns an element to use.
   *
   * @param element name of the element, as {@code elements} returns it
   * @return a future that completes when the element has changed state
   */
  public CompletableFuture<Void> releaseElement(String element) {
    return calls.make("releaseElement", c -> c.send_releaseElement(require("element", element)), Codec::released);
  }

  /**
   * Ends safe mode. The warnings of {@code fabric} report whether the controller is in safe mode, and why.
   *
   * @return a future that completes when the controller has left safe mode
   */
  public CompletableFuture<Void> resume() {
    return calls.make("resume", c -> c.send_resume(), Codec::resumed);
  }

  /**
   * Reads the controller's journal.
   *
   * @param afterSequence sequence number of the last entry read; 0 for the beginning
   * @param limit maximum number of entries
   * @return a future of the entries in order
   */
  public CompletableFuture<List<JournalEntry>> journal(long afterSequence, int limit) {
    return calls.make("journal", c -> c.send_journal(afterSequence, limit), Codec::recv_journal);
  }

  /** Registers a withdrawal for which {@link #close} waits. */
  <A> CompletableFuture<A> track(CompletableFuture<A> withdrawal) {
    withdrawals.add(withdrawal);
    withdrawal.whenComplete((answer, error) -> withdrawals.remove(withdrawal));
    return withdrawal;
  }

  void close() {
    if (!ClientThread.isCurrent()) {
      // Bounded by Withdrawals.SECONDS.
      CompletableFuture.allOf(withdrawals.toArray(CompletableFuture[]::new)).exceptionally(logged -> null).join();
    }
    calls.close();
  }
}
