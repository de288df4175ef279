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
 * A client of Blast's controller, for any number of threads; each call waits for its answer. {@link #async()} has the
 * same calls as futures, on the same connection.
 *
 * <p>The controller's answers are the checked exceptions of the interface, as each method names them; {@link Sentences}
 * has words for them. Everything else that goes wrong is a {@link BlastException}: {@link WrongArgument}, {@link
 * BadCredentials} and {@link TooManyCalls} before anything is asked, {@link ControllerUnreachable} and what extends
 * it where no answer comes, {@link CallFailed} where the controller fails, {@link CallInterrupted}.
 *
 * <p>When a connection breaks or a controller only stands by, the next address is tried. A call is then repeated where
 * that changes nothing, which is so for all but {@code extend}, {@code finish}, {@code withdraw}, {@code reconcile},
 * {@code verifyFabric}, {@code resume} and {@code login}.
 */
public final class BlastClient implements AutoCloseable {
  private final BlastAsyncClient async;

  BlastClient(BlastAsyncClient async) {
    this.async = async;
  }

  /**
   * Begins the making of a client.
   *
   * @return a builder, by which a client of the controller on this machine would be made
   */
  public static ClientBuilder builder() {
    return new ClientBuilder();
  }

  /**
   * The same calls as futures.
   *
   * @return a client that is closed with this one
   */
  public BlastAsyncClient async() {
    return async;
  }

  /**
   * Closes the connection; calls that are under way, and later ones, end with {@link ClientClosed}. What is being
   * withdrawn, because it was cancelled or interrupted, is waited for, up to three seconds.
   */
  @Override
  public void close() {
    async.close();
  }

  /**
   * Asks for a multicast and answers at once. The request stays until it is served, withdrawn or out of patience.
   *
   * @param request what is to be sent, under a key that the caller chooses
   * @return the request as it is now
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws KeyReused where a request with other content has this key
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public RequestStatus submit(MulticastRequest request)
      throws Rejected, KeyReused, Unsupported, Denied, NotLeader {
    return Waiting.answer(() -> async.submit(request));
  }

  /**
   * The first event of a request above a sequence number, as soon as there is one: {@link TimedOut} where none came in
   * time, {@link Ended} where none will come any more.
   *
   * @param key of the request
   * @param afterSequence 0 for the first event that there is
   * @param timeout how long the controller may wait for one
   * @return the event
   * @throws TimedOut where nothing happened in that time
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   * @throws Ended where the request is over, or nothing more will come
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   */
  public Event awaitEvent(String key, long afterSequence, Duration timeout)
      throws TimedOut, UnknownRequest, Denied, NotLeader, Ended, Rejected {
    return Waiting.answer(() -> async.awaitEvent(key, afterSequence, timeout));
  }

  /**
   * Asks for a multicast and waits for its first grant: {@link TimedOut} where none came in time. It then goes on waiting
   * until this client is closed, or asks again. Interrupted, it is withdrawn.
   *
   * @param request what is to be sent, under a key that the caller chooses
   * @param timeout how long the controller may wait for light
   * @return the grant
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws KeyReused where a request with other content has this key
   * @throws TimedOut where nothing happened in that time
   * @throws Ended where the request is over, or nothing more will come
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public Grant request(MulticastRequest request, Duration timeout)
      throws Rejected, KeyReused, TimedOut, Ended, Unsupported, Denied, NotLeader {
    return Waiting.answer(() -> async.request(request, timeout));
  }

  /**
   * Changes a request's members, time or size; refused whole or done whole.
   *
   * @param key of the request
   * @param extension what is to change
   * @return the request when the change is in force
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Ended where the request is over, or nothing more will come
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public RequestStatus extend(String key, Extension extension)
      throws Rejected, Ended, UnknownRequest, Unsupported, Denied, NotLeader {
    return Waiting.answer(() -> async.extend(key, extension));
  }

  /**
   * Says that the transfer of a part is over: its resources go back. Twice is the same as once.
   *
   * @param key of the request
   * @param part as its grant says
   * @param report how it went, for the operator's statistics; or null
   * @return the request as it is now
   * @throws Ended where the request is over, or nothing more will come
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public RequestStatus finish(String key, int part, TransferReport report)
      throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    return Waiting.answer(() -> async.finish(key, part, report));
  }

  /**
   * Gives up a request, pending or active; its resources go back.
   *
   * @param key of the request
   * @return the request as it is now
   * @throws Ended where the request is over, or nothing more will come
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   */
  public RequestStatus withdraw(String key) throws Ended, UnknownRequest, Denied, NotLeader, Rejected {
    return Waiting.answer(() -> async.withdraw(key));
  }

  /**
   * How far a request is; also after its end, as long as its key is remembered.
   *
   * @param key of the request
   * @return the request as it is now
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Denied where the caller is not who may do this
   */
  public RequestStatus status(String key) throws UnknownRequest, Denied {
    return Waiting.answer(() -> async.status(key));
  }

  /**
   * Some of the requests, in order of arrival.
   *
   * @param filter which ones; null: all
   * @param limit how many at most, between 1 and 1000
   * @param cursor where the page before ended; null: begin
   * @return requests, and a cursor where there are more
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   */
  public RequestPage listRequests(RequestFilter filter, int limit, String cursor)
      throws Rejected, Denied, Unsupported {
    return Waiting.answer(() -> async.listRequests(filter, limit, cursor));
  }

  /**
   * What blocks a request.
   *
   * @param key of the request
   * @return an explanation
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Denied where the caller is not who may do this
   */
  public Explanation explain(String key) throws UnknownRequest, Unsupported, Denied {
    return Waiting.answer(() -> async.explain(key));
  }

  /**
   * Racks, splitters, switches and light trees as the controller sees them.
   *
   * @return the fabric as it is now
   * @throws Denied where the caller is not who may do this
   */
  public FabricStatus fabric() throws Denied {
    return Waiting.answer(() -> async.fabric());
  }

  /**
   * What the controller is and which optional features it serves.
   *
   * @return its version
   */
  public Version version() {
    return Waiting.answer(() -> async.version());
  }

  /**
   * Asks for a sign of life.
   */
  public void ping() {
    Waiting.answer(() -> async.ping());
  }

  /**
   * Says who this client is, on this connection and on those that replace it.
   *
   * @param token the secret that the operator gave
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   */
  public void login(String token) throws Denied, Unsupported {
    Waiting.answer(() -> async.login(token));
  }
  /**
   * Asks for light that goes back whatever happens:
   *
   * <pre>{@code
   * try (Granted light = client.granted(request, Duration.ofMinutes(1))) {
   *   send(light.grant());
   *   light.finish();
   * }
   * }</pre>
   *
   * <p>Throws what {@link #request} throws, and then nothing is left waiting.
   *
   * @param request what is to be sent, under a key that the caller chooses
   * @param timeout how long the controller may wait for light
   * @return the light, to be closed by who uses it
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws KeyReused where a request with other content has this key
   * @throws TimedOut where nothing happened in that time
   * @throws Ended where the request is over, or nothing more will come
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public Granted granted(MulticastRequest request, Duration timeout)
      throws Rejected, KeyReused, TimedOut, Ended, Unsupported, Denied, NotLeader {
    return Granted.of(this, request, timeout);
  }

  // ---------------------------------------------------------------------------------------------- operators

  /**
   * Has the controller take no new requests, or take them again; what is active goes on.
   *
   * @param on null only asks
   * @return how far it is
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   */
  public DrainStatus drain(Boolean on) throws Denied, Unsupported, Rejected {
    return Waiting.answer(() -> async.drain(on));
  }

  /**
   * Compares what devices hold with what they should.
   *
   * @param dryRun whether what is wrong stays as it is
   * @return what was found, and what was or would be done
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   */
  public ReconcileReport reconcile(boolean dryRun) throws Denied, Unsupported, Rejected {
    return Waiting.answer(() -> async.reconcile(dryRun));
  }

  /**
   * Checks the fibers against the config with probe frames.
   *
   * @return the differences
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   */
  public FiberReport verifyFabric() throws Denied, Unsupported, Rejected {
    return Waiting.answer(() -> async.verifyFabric());
  }

  /**
   * Every piece of hardware and its state.
   *
   * @return the pieces
   * @throws Denied where the caller is not who may do this
   */
  public List<ElementStatus> elements() throws Denied {
    return Waiting.answer(() -> async.elements());
  }

  /**
   * Takes a piece of hardware out of use; what it serves now goes on.
   *
   * @param element as {@code elements} names it
   * @param reason in one sentence
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   */
  public void quarantine(String element, String reason) throws Rejected, Denied {
    Waiting.answer(() -> async.quarantine(element, reason));
  }

  /**
   * Puts a piece of hardware back into use.
   *
   * @param element as {@code elements} names it
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   */
  public void releaseElement(String element) throws Rejected, Denied {
    Waiting.answer(() -> async.releaseElement(element));
  }

  /**
   * Lets a controller that is holding decide again; the warnings of {@code fabric} say whether and why it is.
   *
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   */
  public void resume() throws Rejected, Denied, Unsupported {
    Waiting.answer(() -> async.resume());
  }

  /**
   * Reads the controller's journal.
   *
   * @param afterSequence 0 for its beginning
   * @param limit how many entries at most
   * @return entries in order
   * @throws Denied where the caller is not who may do this
   * @throws Unsupported where it takes a feature that this controller does not serve
   */
  public List<JournalEntry> journal(long afterSequence, int limit) throws Denied, Unsupported {
    return Waiting.answer(() -> async.journal(afterSequence, limit));
  }
}
