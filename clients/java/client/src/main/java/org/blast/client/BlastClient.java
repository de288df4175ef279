package org.blast.client;

import java.time.Duration;
import java.util.List;
import org.blast.Denied;
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
import org.blast.KeyReused;
import org.blast.MulticastRequest;
import org.blast.NotLeader;
import org.blast.TimedOut;
import org.blast.ReconcileReport;
import org.blast.Rejected;
import org.blast.RequestFilter;
import org.blast.RequestPage;
import org.blast.RequestStatus;
import org.blast.TransferReport;
import org.blast.UnknownRequest;
import org.blast.Unsupported;
import org.blast.Version;

/**
 * A thread-safe, blocking client of Blast's controller. {@link #async()} offers the same calls as futures, on the same
 * connection.
 *
 * <p>The controller refuses a call with a checked exception of the interface; {@link ErrorMessages} describes each in a
 * sentence. Every other failure is a {@link BlastException}: {@link WrongArgument}, {@link BadCredentials} and {@link
 * TooManyCalls} before the call is sent, {@link ControllerUnreachable} and its subclasses if no answer arrives, {@link
 * CallFailed} if the controller fails, {@link CallInterrupted} if the calling thread is interrupted.
 *
 * <p>If a connection breaks or a controller is a standby, the client tries the next address. It repeats idempotent
 * calls there: all but {@code extend}, {@code finish}, {@code withdraw}, {@code reconcile}, {@code verifyFabric},
 * {@code resume} and {@code login}. It repeats any call that a standby refused.
 */
public final class BlastClient implements AutoCloseable {
  private final BlastAsyncClient async;

  BlastClient(BlastAsyncClient async) {
    this.async = async;
  }

  /**
   * Returns a builder for a client.
   *
   * @return a builder whose default is the controller on this machine
   */
  public static ClientBuilder builder() {
    return new ClientBuilder();
  }

  /**
   * Returns the asynchronous client on the same connection.
   *
   * @return a client that closes with this one
   */
  public BlastAsyncClient async() {
    return async;
  }

  /**
   * Closes the connection. Pending and later calls fail with {@link ClientClosed}. Waits up to three seconds for the
   * withdrawal of requests that were canceled or interrupted.
   */
  @Override
  public void close() {
    async.close();
  }

  /**
   * Submits a multicast request without waiting for a grant. The request stays until it is served, withdrawn or
   * expired.
   *
   * @param request sender, receivers and size, under a key that the caller chooses
   * @return the current status of the request
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws KeyReused if a request with other content has this key
   * @throws Unsupported if the controller does not serve this feature
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public RequestStatus submit(MulticastRequest request)
      throws Rejected, KeyReused, Unsupported, Denied, NotLeader {
    return BlockingCall.answer(() -> async.submit(request));
  }

  /**
   * Waits for the first event of a request above a sequence number. Throws {@link TimedOut} if the timeout passes first
   * and {@link Ended} if no event will follow.
   *
   * @param key key of the request
   * @param afterSequence sequence number of the last event seen; 0 for the first event
   * @param timeout maximum time that the controller waits for an event
   * @return the event
   * @throws TimedOut if the timeout passes first
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   * @throws Ended if the request has ended and no event follows
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   */
  public Event awaitEvent(String key, long afterSequence, Duration timeout)
      throws TimedOut, UnknownRequest, Denied, NotLeader, Ended, Rejected {
    return BlockingCall.answer(() -> async.awaitEvent(key, afterSequence, timeout));
  }

  /**
   * Submits a multicast request and waits for its first grant. After {@link TimedOut}, the request stays pending until
   * this client closes or repeats the call. An interrupt withdraws the request.
   *
   * @param request sender, receivers and size, under a key that the caller chooses
   * @param timeout maximum time that the controller waits for a grant
   * @return the grant
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws KeyReused if a request with other content has this key
   * @throws TimedOut if the timeout passes first
   * @throws Ended if the request has ended and no event follows
   * @throws Unsupported if the controller does not serve this feature
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public Grant request(MulticastRequest request, Duration timeout)
      throws Rejected, KeyReused, TimedOut, Ended, Unsupported, Denied, NotLeader {
    return BlockingCall.answer(() -> async.request(request, timeout));
  }

  /**
   * Changes the members, the lease or the size of a request. The controller applies all changes or none.
   *
   * @param key key of the request
   * @param extension the changes
   * @return the status of the request once the change is in effect
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Ended if the request has ended and no event follows
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Unsupported if the controller does not serve this feature
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public RequestStatus extend(String key, Extension extension)
      throws Rejected, Ended, UnknownRequest, Unsupported, Denied, NotLeader {
    return BlockingCall.answer(() -> async.extend(key, extension));
  }

  /**
   * Reports that the transfer of a part is complete, which releases its resources. A second call has no effect.
   *
   * @param key key of the request
   * @param part number of the part, from its grant
   * @param report the result, for the operator's statistics; null to report nothing
   * @return the current status of the request
   * @throws Ended if the request has ended and no event follows
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public RequestStatus finish(String key, int part, TransferReport report)
      throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    return BlockingCall.answer(() -> async.finish(key, part, report));
  }

  /**
   * Withdraws a pending or active request, which releases its resources.
   *
   * @param key key of the request
   * @return the current status of the request
   * @throws Ended if the request has ended and no event follows
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   */
  public RequestStatus withdraw(String key) throws Ended, UnknownRequest, Denied, NotLeader, Rejected {
    return BlockingCall.answer(() -> async.withdraw(key));
  }

  /**
   * Returns the status of a request, also after its end until the controller forgets its key.
   *
   * @param key key of the request
   * @return the current status of the request
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Denied if the caller lacks permission
   */
  public RequestStatus status(String key) throws UnknownRequest, Denied {
    return BlockingCall.answer(() -> async.status(key));
  }

  /**
   * Returns one page of the requests, in order of arrival.
   *
   * @param filter which requests to return; null for all
   * @param limit maximum number of requests, 1 to 1000
   * @param cursor cursor of the previous page; null for the first page
   * @return the requests, with a cursor if more follow
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   */
  public RequestPage listRequests(RequestFilter filter, int limit, String cursor)
      throws Rejected, Denied, Unsupported {
    return BlockingCall.answer(() -> async.listRequests(filter, limit, cursor));
  }

  /**
   * Explains why a request waits.
   *
   * @param key key of the request
   * @return the explanation
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Unsupported if the controller does not serve this feature
   * @throws Denied if the caller lacks permission
   */
  public Explanation explain(String key) throws UnknownRequest, Unsupported, Denied {
    return BlockingCall.answer(() -> async.explain(key));
  }

  /**
   * Returns the racks, splitters, switches and light trees as the controller sees them.
   *
   * @return the current state of the fabric
   * @throws Denied if the caller lacks permission
   */
  public FabricStatus fabric() throws Denied {
    return BlockingCall.answer(() -> async.fabric());
  }

  /**
   * Returns the version of the controller and the optional features that it serves.
   *
   * @return the version
   */
  public Version version() {
    return BlockingCall.answer(() -> async.version());
  }

  /**
   * Checks that the controller answers.
   */
  public void ping() {
    BlockingCall.answer(() -> async.ping());
  }

  /**
   * Authenticates this client, on this connection and on later connections.
   *
   * @param token secret that the operator issued
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   */
  public void login(String token) throws Denied, Unsupported {
    BlockingCall.answer(() -> async.login(token));
  }

  /**
   * Submits a multicast request, waits for its first grant and releases it when the {@code try} block ends:
   *
   * <pre>{@code
   * try (Granted granted = client.granted(request, Duration.ofMinutes(1))) {
   *   send(granted.grant());
   *   granted.finish();
   * }
   * }</pre>
   *
   * <p>Withdraws the request if no grant arrives, then throws the exceptions of {@link #request}.
   *
   * @param request sender, receivers and size, under a key that the caller chooses
   * @param timeout maximum time that the controller waits for a grant
   * @return the grant, which the caller closes
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws KeyReused if a request with other content has this key
   * @throws TimedOut if the timeout passes first
   * @throws Ended if the request has ended and no event follows
   * @throws Unsupported if the controller does not serve this feature
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public Granted granted(MulticastRequest request, Duration timeout)
      throws Rejected, KeyReused, TimedOut, Ended, Unsupported, Denied, NotLeader {
    return Granted.of(this, request, timeout);
  }

  // ---------------------------------------------------------------------------------------------- operators

  /**
   * Starts or stops a drain: a draining controller admits no new requests, and active requests continue.
   *
   * @param on true to drain, false to admit requests again, null to query the state
   * @return the progress of the drain
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   */
  public DrainStatus drain(Boolean on) throws Denied, Unsupported, Rejected {
    return BlockingCall.answer(() -> async.drain(on));
  }

  /**
   * Compares the state of the devices with the journal and repairs the differences.
   *
   * @param dryRun true to report differences without repairing them
   * @return the differences and the repairs, done or planned
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   */
  public ReconcileReport reconcile(boolean dryRun) throws Denied, Unsupported, Rejected {
    return BlockingCall.answer(() -> async.reconcile(dryRun));
  }

  /**
   * Verifies the fibers of the configuration with probe frames.
   *
   * @return the differences
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   */
  public FiberReport verifyFabric() throws Denied, Unsupported, Rejected {
    return BlockingCall.answer(() -> async.verifyFabric());
  }

  /**
   * Returns every element of the hardware and its state.
   *
   * @return the elements
   * @throws Denied if the caller lacks permission
   */
  public List<ElementStatus> elements() throws Denied {
    return BlockingCall.answer(() -> async.elements());
  }

  /**
   * Takes an element out of use. Transfers that use it now continue.
   *
   * @param element name of the element, as {@code elements} returns it
   * @param reason one sentence for the operators
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   */
  public void quarantine(String element, String reason) throws Rejected, Denied {
    BlockingCall.answer(() -> async.quarantine(element, reason));
  }

  /**
   * Returns an element to use.
   *
   * @param element name of the element, as {@code elements} returns it
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   */
  public void releaseElement(String element) throws Rejected, Denied {
    BlockingCall.answer(() -> async.releaseElement(element));
  }

  /**
   * Ends safe mode. The warnings of {@code fabric} report whether the controller is in safe mode, and why.
   *
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   */
  public void resume() throws Rejected, Denied, Unsupported {
    BlockingCall.answer(() -> async.resume());
  }

  /**
   * Reads the controller's journal.
   *
   * @param afterSequence sequence number of the last entry read; 0 for the beginning
   * @param limit maximum number of entries
   * @return the entries in order
   * @throws Denied if the caller lacks permission
   * @throws Unsupported if the controller does not serve this feature
   */
  public List<JournalEntry> journal(long afterSequence, int limit) throws Denied, Unsupported {
    return BlockingCall.answer(() -> async.journal(afterSequence, limit));
  }
}
