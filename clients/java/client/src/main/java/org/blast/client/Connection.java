package org.blast.client;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ProtocolException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TMessage;
import org.blast.NotLeader;

/**
 * One connection: calls go out by whoever sends, answers come in by a thread of its own and find their call by its
 * sequence number, for they may come in another order.
 */
final class Connection {
  private static final int BUFFER_BYTES = 1 << 16;

  /** Hears of calls that this connection could not bring to an end. */
  interface Owner {
    /** The connection ended. */
    void ended(Connection connection, Failure failure, List<Call<?>> unanswered);

    /** The other side is not the controller that decides; the call was not carried out. */
    void refused(Connection connection, Call<?> call, NotLeader answer);
  }

  final Address address;
  private final Socket socket;
  private final Closeable wire;
  private final OutputStream out;
  private final Owner owner;
  private final Thread receiver;
  private final Map<Integer, Call<?>> outstanding = new HashMap<>();
  private int latestSent;
  private Failure failure;
  private boolean retired;
  private volatile boolean heard;
  private volatile long heardAt = System.nanoTime();

  /** `wire` is what is closed to end it: under TLS the socket below, for closing TLS may wait for the other side. */
  Connection(Address address, Socket socket, Closeable wire, Owner owner) throws IOException {
    this.address = address;
    this.socket = socket;
    this.wire = wire;
    this.out = socket.getOutputStream();
    this.owner = owner;
    this.receiver = new OwnThread(this::receive, "receiver of " + address);
    receiver.start();
  }

  /** Why it has ended; null as long as it has not. */
  synchronized Failure failure() {
    return failure;
  }

  /** Whether anything ever came. */
  boolean wasHeard() {
    return heard;
  }

  /** By {@link System#nanoTime}. */
  boolean wasHeardSince(long time) {
    return heardAt - time > 0;
  }

  /** Sends a call, by one thread only; false where it has already ended and nothing was sent. */
  boolean send(Call<?> call) {
    synchronized (this) {
      if (failure != null) {
        return false;
      }
      outstanding.put(call.sequence, call);
      latestSent = Math.max(latestSent, call.sequence);
    }
    call.travelsOn(this);
    if (call.future.isDone()) {
      forget(call);
      return true;
    }
    try {
      out.write(call.frame());
    } catch (IOException broken) {
      end(Failure.of(broken, heard));
    }
    return true;
  }

  /** Nobody waits for this call any more: its answer will be dropped. */
  void forget(Call<?> call) {
    synchronized (this) {
      outstanding.remove(call.sequence);
    }
    endIfIdle();
  }

  /** Brings what is outstanding to its end, and then closes. */
  void retire() {
    synchronized (this) {
      retired = true;
    }
    endIfIdle();
  }

  private void endIfIdle() {
    boolean idle;
    synchronized (this) {
      idle = retired && outstanding.isEmpty();
    }
    if (idle) {
      end(Failure.CLOSED_HERE);
    }
  }

  /** Closes, and says so to the owner once. */
  void end(Failure reason) {
    List<Call<?>> unanswered;
    synchronized (this) {
      if (failure != null) {
        return;
      }
      failure = reason;
      unanswered = new ArrayList<>(outstanding.values());
      outstanding.clear();
    }
    try {
      wire.close();
    } catch (IOException ignored) {
      // It is as closed as it can be.
    }
    owner.ended(this, reason, unanswered);
  }

  void join(long milliseconds) throws InterruptedException {
    receiver.join(milliseconds);
  }

  private void receive() {
    try {
      DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), BUFFER_BYTES));
      while (true) {
        deliver(Frames.read(in));
      }
    } catch (IOException broken) {
      end(Failure.of(broken, heard));
    } finally {
      // Not even an error of ours leaves anybody waiting for nothing.
      end(new Failure("its receiver ended", false, null));
    }
  }

  private void deliver(byte[] message) throws IOException {
    int sequence = sequenceOf(message);
    heard = true;
    heardAt = System.nanoTime();
    Call<?> call;
    synchronized (this) {
      call = outstanding.remove(sequence);
      if (call == null && (sequence < 1 || sequence > latestSent)) {
        throw new ProtocolException("an answer to call " + sequence + ", which was never made");
      }
    }
    // Of a call that nobody waits for any more the answer may come late.
    if (call != null) {
      try {
        call.answer(message);
      } catch (NotLeader answer) {
        owner.refused(this, call, answer);
      } catch (RuntimeException bug) {
        call.fail(bug);
      }
    }
    endIfIdle();
  }

  private static int sequenceOf(byte[] message) throws ProtocolException {
    try {
      TMessage header = Codec.header(message);
      return header.seqid;
    } catch (TException | RuntimeException error) {
      throw new ProtocolException("a message that is none of Blast's");
    }
  }
}
