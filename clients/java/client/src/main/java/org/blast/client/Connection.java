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
 * A connection to a controller. The caller's thread writes calls; a thread of the connection reads answers, which may
 * arrive in any order, and matches them to calls by sequence number.
 */
final class Connection {
  private static final int BUFFER_BYTES = 1 << 16;

  /** A receiver of the calls that this connection cannot complete. */
  interface Owner {
    /** Handles the end of the connection. */
    void ended(Connection connection, Failure failure, List<Call<?>> unanswered);

    /** Handles a call that the other side refused because it is not the leader. */
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
  private volatile boolean received;
  private volatile long receivedAt = System.nanoTime();

  /** Starts reading. Ending closes `wire`: with TLS the underlying socket, since closing TLS may wait for the peer. */
  Connection(Address address, Socket socket, Closeable wire, Owner owner) throws IOException {
    this.address = address;
    this.socket = socket;
    this.wire = wire;
    this.out = socket.getOutputStream();
    this.owner = owner;
    this.receiver = new ClientThread(this::receive, "receiver of " + address);
    receiver.start();
  }

  /** Returns why the connection ended; null while it is open. */
  synchronized Failure failure() {
    return failure;
  }

  /** Returns true if a message arrived after `time`, by {@link System#nanoTime}. */
  boolean receivedSince(long time) {
    return receivedAt - time > 0;
  }

  /** Sends a call, from one thread only. Returns false if the connection has ended and nothing was sent. */
  boolean send(Call<?> call) {
    synchronized (this) {
      if (failure != null) {
        return false;
      }
      outstanding.put(call.sequence, call);
      latestSent = Math.max(latestSent, call.sequence);
    }
    call.sentOn(this);
    if (call.future.isDone()) {
      forget(call);
      return true;
    }
    try {
      out.write(call.frame());
    } catch (IOException broken) {
      end(Failure.of(broken, received));
    }
    return true;
  }

  /** Drops the answer to a call that has ended. */
  void forget(Call<?> call) {
    synchronized (this) {
      outstanding.remove(call.sequence);
    }
    endIfIdle();
  }

  /** Closes the connection once all outstanding calls have ended. */
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

  /** Closes the connection and notifies the owner once. */
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
      // Nothing else can close it.
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
      end(Failure.of(broken, received));
    } finally {
      // After any error of this thread, outstanding calls must fail and not wait.
      end(new Failure("the receiving thread ended", false, null));
    }
  }

  private void deliver(byte[] message) throws IOException {
    int sequence = sequenceOf(message);
    received = true;
    receivedAt = System.nanoTime();
    Call<?> call;
    synchronized (this) {
      call = outstanding.remove(sequence);
      if (call == null && (sequence < 1 || sequence > latestSent)) {
        throw new ProtocolException("an answer to call " + sequence + ", which was never sent");
      }
    }
    // The answer to a dropped call may still arrive.
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
      throw new ProtocolException("a message that is not of the Blast interface");
    }
  }
}
