package org.blast.client;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.transport.TTransportException;

/** One call from its beginning to its end: the same one, whichever connections it travels on. */
final class Call<A> {
  /**
   * Calls whose repetition changes nothing and has the same answer. `extend` would add twice; `finish` and `withdraw`
   * would answer that the request has ended.
   */
  private static final Set<String> SAFE_TO_REPEAT =
      Set.of(
          "submit",
          "awaitEvent",
          "request",
          "status",
          "listRequests",
          "explain",
          "fabric",
          "version",
          "ping",
          "drain",
          "elements",
          "quarantine",
          "releaseElement",
          "journal");

  /** Writes a call that lets the controller wait so many milliseconds more. */
  @FunctionalInterface
  interface Encoder {
    void encode(Codec codec, long leftMs) throws TException;
  }

  final String name;
  final int sequence;
  final CompletableFuture<A> future = new CompletableFuture<>();
  private final Encoder encoder;
  private final Codec.Decoder<A> decoder;
  private final long madeAt = System.nanoTime();
  private final long waitNanos;
  private byte[] frame;
  private int attempts;
  private volatile Connection connection;
  private volatile long sentAt = madeAt;

  /** `waitNanos`: how long the controller may wait for something to happen before it answers. Throws WrongArgument. */
  Call(String name, int sequence, long waitNanos, Encoder encoder, Codec.Decoder<A> decoder) {
    this.name = name;
    this.sequence = sequence;
    this.waitNanos = waitNanos;
    this.encoder = encoder;
    this.decoder = decoder;
    // What the caller gave is written now: later it may have changed, and its faults are the caller's to hear of.
    this.frame = encoded();
  }

  /** What is to be sent. */
  byte[] frame() {
    if (waitNanos > 0 && attempts > 0) {
      frame = encoded();
    }
    return frame;
  }

  private byte[] encoded() {
    long left = Math.max(waitNanos - (System.nanoTime() - madeAt), 0);
    long leftMs = waitNanos == 0 ? 0 : Math.max(TimeUnit.NANOSECONDS.toMillis(left + 500_000), 1);
    return Codec.frame(sequence, codec -> encoder.encode(codec, leftMs));
  }

  /** It travels on this connection now. */
  void travelsOn(Connection connection) {
    this.sentAt = System.nanoTime();
    this.connection = connection;
  }

  /** The connection that it was sent on last; null before. */
  Connection connection() {
    return connection;
  }

  /** When it was sent last, or made, by {@link System#nanoTime}. */
  long sentAt() {
    return sentAt;
  }

  boolean isSafeToRepeat() {
    return SAFE_TO_REPEAT.contains(name);
  }

  /** Whether it may be sent once more: once for each address beside the first time. */
  synchronized boolean mayTryAgain(int addresses) {
    return attempts++ < addresses;
  }

  /** Ends it with the answer in a message, unless that is {@link org.blast.NotLeader}, which is thrown. */
  void answer(byte[] message) throws org.blast.NotLeader {
    try {
      future.complete(Codec.answer(message, sequence, decoder));
    } catch (org.blast.NotLeader other) {
      throw other;
    } catch (TProtocolException | TTransportException | RuntimeException undecodable) {
      String sentence = "the answer to " + name + " cannot be read: the controller may be newer than this client";
      fail(new CallFailed(sentence, undecodable));
    } catch (TApplicationException failure) {
      fail(new CallFailed(failure));
    } catch (TException answer) {
      fail(answer);
    }
  }

  void fail(Throwable reason) {
    future.completeExceptionally(reason);
  }
}
