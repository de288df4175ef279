package org.blast.client;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.transport.TTransportException;

/** A call and its answer. Repeated on another connection, it stays the same call. */
final class Call<A> {
  /**
   * Calls that are repeated. A repeated `extend` would add twice; a repeated `finish` or `withdraw` fails if the part
   * has ended for another reason meanwhile.
   */
  private static final Set<String> IDEMPOTENT =
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

  /** Encodes a call that lets the controller wait `leftMs` milliseconds more. */
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

  /** Encodes the call. The controller may wait `waitNanos` for an event before it answers. Throws WrongArgument. */
  Call(String name, int sequence, long waitNanos, Encoder encoder, Codec.Decoder<A> decoder) {
    this.name = name;
    this.sequence = sequence;
    this.waitNanos = waitNanos;
    this.encoder = encoder;
    this.decoder = decoder;
    // Encoded at once: the caller may change the arguments later, and wrong arguments must fail in the caller.
    this.frame = encoded();
  }

  /** Returns the frame to send. */
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

  /** Notes that the call is sent on this connection. */
  void sentOn(Connection connection) {
    this.sentAt = System.nanoTime();
    this.connection = connection;
  }

  /** Returns the connection of the last attempt; null before the first. */
  Connection connection() {
    return connection;
  }

  /** Returns the {@link System#nanoTime} of the last attempt, or of the creation before the first. */
  long sentAt() {
    return sentAt;
  }

  boolean isIdempotent() {
    return IDEMPOTENT.contains(name);
  }

  /** Counts an attempt. Returns false once each address has had a repetition. */
  synchronized boolean countAttempt(int addresses) {
    return attempts++ < addresses;
  }

  /** Completes the call with the answer in a message. Throws {@link org.blast.NotLeader} if that is the answer. */
  void answer(byte[] message) throws org.blast.NotLeader {
    try {
      future.complete(Codec.answer(message, sequence, decoder));
    } catch (org.blast.NotLeader other) {
      throw other;
    } catch (TProtocolException | TTransportException | RuntimeException undecodable) {
      String sentence = "cannot decode the answer to " + name + ": the controller may be newer than this client; "
          + "update the client";
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
