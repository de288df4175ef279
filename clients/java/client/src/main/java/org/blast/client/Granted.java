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
 * The light of one request, for the length of a {@code try}; see {@link BlastClient#granted}. Not for several threads.
 *
 * <p>A {@code try} does not tell {@link #close} whether its block came to its end or failed. So the block says that all
 * was sent, by {@link #finish} as its last word; closed without it, the request is withdrawn.
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
    } catch (TimedOut | ControllerUnreachable | CallFailed mayBeWaiting) {
      try {
        Waiting.answer(() -> GivingBack.abandon(client.async(), request));
      } catch (BlastException failure) {
        mayBeWaiting.addSuppressed(failure);
      }
      throw mayBeWaiting;
    }
  }

  /**
   * Permission to transmit.
   *
   * @return the first grant of the request
   */
  public Grant grant() {
    return grant;
  }

  /**
   * Says that all was sent: the light goes back.
   *
   * @return the request as it is now
   * @throws Ended where the light had gone before
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public RequestStatus finish() throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    return finish(new TransferReport());
  }

  /**
   * Says that all was sent, and how it went.
   *
   * @param report for the operator's statistics
   * @return the request as it is now
   * @throws Ended where the light had gone before
   * @throws UnknownRequest where the controller knows no such request, or not any more
   * @throws Rejected where it breaks a rule, exceeds the fabric or cannot be had now
   * @throws Denied where the caller is not who may do this
   * @throws NotLeader where the only address is that of a controller that stands by
   */
  public RequestStatus finish(TransferReport report) throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    RequestStatus status;
    try {
      status = finishOnce(report);
    } catch (Ended gone) {
      over = true;
      throw gone;
    }
    over = isFinal(status.state);
    if (!over) {
      // What other parts might still get, nobody would use.
      withdraw();
    }
    return status;
  }

  private RequestStatus finishOnce(TransferReport report)
      throws Ended, UnknownRequest, Rejected, Denied, NotLeader {
    String name = GivingBack.nameOf(request);
    try {
      return client.finish(name, grant.part, report);
    } catch (ConnectionBroken repeatable) {
      // To finish twice is the same as once.
      return client.finish(name, grant.part, report);
    }
  }

  /** Gives up: the request is withdrawn, within three seconds, or a {@link BlastException} says why it is not. */
  public void withdraw() {
    over = true;
    Waiting.answer(() -> GivingBack.giveUp(client.async(), request));
  }

  /**
   * Withdraws the request unless it was finished, within three seconds; where that fails a {@link BlastException} says
   * so, which stands beside the one that ended the block.
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
