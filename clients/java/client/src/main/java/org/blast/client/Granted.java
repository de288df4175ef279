package org.blast.client;

import java.time.Duration;
import org.blast.Denied;
import org.blast.Ended;
import org.blast.Grant;
import org.blast.KeyReused;
import org.blast.MulticastRequest;
import org.blast.NotLeader;
import org.blast.TimedOut;
import org.blast.PartState;
import org.blast.Rejected;
import org.blast.RequestStatus;
import org.blast.TransferReport;
import org.blast.UnknownRequest;
import org.blast.Unsupported;

/**
 * A granted request that a {@code try} block releases at its end; see {@link BlastClient#granted}. Not thread-safe.
 *
 * <p>{@link #close} cannot know whether the block completed or failed. The block therefore calls {@link #finish} last,
 * after all data is sent; without that call, {@link #close} withdraws the request.
 */
public final class Granted implements AutoCloseable {
  private final BlastClient client;
  private final MulticastRequest request;
  private final Grant grant;
  private boolean over;

  private Granted(BlastClient client, MulticastRequest request, Grant grant) {
    this.client = client;
    this.request = request;
    this.grant = grant;
  }

  static Granted of(BlastClient client, MulticastRequest request, Duration timeout)
      throws Rejected, KeyReused, TimedOut, Ended, Unsupported, Denied, NotLeader {
    try {
      return new Granted(client, request, client.request(request, timeout));
    } catch (TimedOut | ControllerUnreachable | CallFailed mayBePending) {
      try {
        BlockingCall.answer(() -> Withdrawals.withdrawIfSubmitted(client.async(), request));
      } catch (BlastException failure) {
        mayBePending.addSuppressed(failure);
      }
      throw mayBePending;
    }
  }

  /**
   * Returns the permission to transmit.
   *
   * @return the first grant of the request
   */
  public Grant grant() {
    return grant;
  }

  /**
   * Reports that all data is sent, which releases the grant.
   *
   * @return the current status of the request
   * @throws Ended if the request had ended before
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public RequestStatus finish() throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    return finish(new TransferReport());
  }

  /**
   * Reports that all data is sent, with a result, which releases the grant.
   *
   * @param report the result, for the operator's statistics
   * @return the current status of the request
   * @throws Ended if the request had ended before
   * @throws UnknownRequest if the controller does not know the request, or has forgotten it
   * @throws Rejected if the call breaks a rule, exceeds the fabric or cannot be served now
   * @throws Denied if the caller lacks permission
   * @throws NotLeader if the only address is that of a standby controller
   */
  public RequestStatus finish(TransferReport report) throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    RequestStatus status;
    try {
      status = finishOnce(report);
    } catch (Ended ended) {
      over = true;
      throw ended;
    }
    over = isFinal(status.state);
    if (!over) {
      // Later grants of other parts would stay unused.
      withdraw();
    }
    return status;
  }

  private RequestStatus finishOnce(TransferReport report)
      throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    String name = Withdrawals.nameOf(request);
    try {
      return client.finish(name, grant.part, report);
    } catch (ConnectionBroken repeatable) {
      // A second finish has no effect.
      return client.finish(name, grant.part, report);
    }
  }

  /** Withdraws the request. Throws {@link BlastException} if that does not succeed within three seconds. */
  public void withdraw() {
    over = true;
    BlockingCall.answer(() -> Withdrawals.withdrawGranted(client.async(), request));
  }

  /**
   * Withdraws the request unless it is finished. Throws {@link BlastException} if that does not succeed within three
   * seconds; Java adds it as a suppressed exception to one that ended the block.
   */
  @Override
  public void close() {
    if (!over) {
      withdraw();
    }
  }

  private static boolean isFinal(PartState state) {
    return switch (state) {
      case DONE, WITHDRAWN, EXPIRED, FAILED, REJECTED -> true;
      case PENDING, CONFIGURING, ACTIVE -> false;
    };
  }
}
