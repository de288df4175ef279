package org.blast.client;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.blast.NotLeader;

/**
 * The calls of a client. A sender thread connects, logs in and writes, so that callers block on nothing but their
 * futures. Each connection has a receiving thread. A timer thread expires calls.
 */
final class Calls implements Connection.Owner, AutoCloseable {
  private static final long MAX_WAIT_NANOS = TimeUnit.DAYS.toNanos(36_500);
  private static final long CLOSE_MILLIS = 2_000;

  private final Route route;
  private final Dialer dialer;
  private final Duration timeout;
  private final int maxCalls;
  private final Semaphore permits;
  private final AtomicInteger sequence = new AtomicInteger();
  private final Set<Call<?>> pending = ConcurrentHashMap.newKeySet();
  private final BlockingQueue<Call<?>> toSend = new LinkedBlockingQueue<>();
  private final AtomicReference<Connection> current = new AtomicReference<>();
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
  private final ScheduledThreadPoolExecutor timer;
  private final Thread sender = new ClientThread(this::send, "sender");
  private volatile String token;
  private volatile boolean closed;

  Calls(Route route, Dialer dialer, Duration timeout, int maxCalls, String token) {
    this.route = route;
    this.dialer = dialer;
    this.timeout = timeout;
    this.maxCalls = maxCalls;
    this.permits = new Semaphore(maxCalls);
    this.token = token;
    this.timer = new ScheduledThreadPoolExecutor(1, work -> new ClientThread(work, "timer"));
    timer.setRemoveOnCancelPolicy(true);
    sender.start();
  }

  // ------------------------------------------------------------------------------------------- making calls

  /** Makes a call that the controller answers at once. */
  <A> CompletableFuture<A> make(String name, Codec.Encoder encoder, Codec.Decoder<A> decoder) {
    return begin(name, 0, (codec, left) -> encoder.encode(codec), decoder);
  }

  /** Makes a call for which the controller waits up to `wait` for an event. */
  <A> CompletableFuture<A> make(String name, Duration wait, Call.Encoder encoder, Codec.Decoder<A> decoder) {
    if (wait == null || wait.isNegative() || wait.compareTo(Duration.ofNanos(MAX_WAIT_NANOS)) > 0) {
      String sentence = "the time to wait must be a duration from 0 to 100 years, not ";
      return CompletableFuture.failedFuture(new WrongArgument(sentence + wait));
    }
    return begin(name, wait.toNanos(), encoder, decoder);
  }

  private <A> CompletableFuture<A> begin(String name, long wait, Call.Encoder encoder, Codec.Decoder<A> decoder) {
    if (closed) {
      return CompletableFuture.failedFuture(new ClientClosed());
    }
    Call<A> call;
    try {
      call = new Call<>(name, nextSequence(), wait, encoder, decoder);
    } catch (WrongArgument error) {
      return CompletableFuture.failedFuture(error);
    }
    if (!permits.tryAcquire()) {
      return CompletableFuture.failedFuture(new TooManyCalls(maxCalls));
    }
    pending.add(call);
    Future<?> end = expireAfter(call, wait + timeout.toNanos());
    call.future.whenComplete((answer, error) -> completed(call, end));
    toSend.add(call);
    if (closed) {
      call.fail(new ClientClosed());
    }
    return call.future;
  }

  private int nextSequence() {
    return sequence.updateAndGet(latest -> latest % Integer.MAX_VALUE + 1);
  }

  /** Cleans up after a call, whether an answer, the timeout or the caller ended it. */
  private void completed(Call<?> call, Future<?> end) {
    end.cancel(false);
    pending.remove(call);
    permits.release();
    if (call.connection() != null) {
      call.connection().forget(call);
    }
  }

  private Future<?> expireAfter(Call<?> call, long nanos) {
    try {
      return timer.schedule(() -> expire(call, nanos), nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException closedMeanwhile) {
      return CompletableFuture.completedFuture(null);
    }
  }

  private void expire(Call<?> call, long nanos) {
    // A call that is not sent yet may be queued behind one that the current connection cannot write.
    Connection connection = call.connection() != null ? call.connection() : current.get();
    String where = connection == null ? route.toString() : connection.address.toString();
    call.fail(new NoAnswerInTime(where, nanos / 1e9));
    if (connection != null && !connection.receivedSince(call.sentAt())) {
      // The connection may be dead without an error: its other calls do better on another connection.
      connection.end(new Failure("no answer within the timeout", false, null));
    }
  }

  // ------------------------------------------------------------------------------------------------- sending

  private void send() {
    while (!closed) {
      try {
        send(toSend.take());
      } catch (InterruptedException end) {
        // close() interrupts this thread; the loop condition ends it.
      }
    }
  }

  private void send(Call<?> call) throws InterruptedException {
    if (call.future.isDone()) {
      return;
    }
    try {
      Connection connection = connected();
      if (!connection.send(call)) {
        noteFailure(connection);
        retry(call, route.broken(null));
      }
    } catch (RuntimeException failure) {
      // Queued calls would wait as long for the same failure.
      List<Call<?>> queued = new ArrayList<>(List.of(call));
      toSend.drainTo(queued);
      queued.forEach(one -> one.fail(failure));
    }
  }

  private Connection connected() throws InterruptedException {
    Connection connection = current.get();
    if (connection != null) {
      Failure failure = connection.failure();
      if (failure == null) {
        return connection;
      }
      noteFailure(connection);
    }
    Duration attemptTimeout = timeout.dividedBy(route.size());
    for (int tries = 0; tries < route.size(); tries++) {
      Address address = route.current();
      try {
        return connect(address, attemptTimeout);
      } catch (IOException error) {
        route.advance(address, Failure.connecting(error));
      } catch (ControllerUnreachable brokenAtLogin) {
        // Connection.Owner.ended has recorded the failure.
      }
    }
    throw closed ? new ClientClosed() : route.unreachable(null);
  }

  /** Records the failure of a connection that may have ended before its owner was notified. */
  private void noteFailure(Connection connection) {
    Failure failure = connection.failure();
    if (failure != null && failure != Failure.CLOSED_HERE) {
      route.advance(connection.address, failure);
    }
  }

  private Connection connect(Address address, Duration attemptTimeout) throws IOException, InterruptedException {
    route.clearFailure(address);
    Connection connection = dialer.dial(address, attemptTimeout, this);
    connections.add(connection);
    if (closed) {
      connection.end(Failure.CLOSED_HERE);
      throw new ClientClosed();
    }
    if (token != null) {
      logIn(connection, token, attemptTimeout);
    }
    current.set(connection);
    return connection;
  }

  /** Logs in. Closes the connection on failure, so that no call runs without the identity that the token gives. */
  private void logIn(Connection connection, String token, Duration timeout)
      throws IOException, InterruptedException {
    Call<Void> login = new Call<>("login", nextSequence(), 0, (c, left) -> c.send_login(token), Codec::loggedIn);
    boolean loggedIn = false;
    try {
      connection.send(login);
      login.future.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
      loggedIn = true;
    } catch (TimeoutException late) {
      throw new IOException("no answer to the login within " + timeout.toMillis() + " ms", late);
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof BlastException failure) {
        throw failure;
      }
      String sentence = "the controller at " + connection.address + " refuses the token: ";
      throw new BadCredentials(sentence + ErrorMessages.of(failed), failed.getCause());
    } finally {
      if (!loggedIn) {
        connection.end(Failure.CLOSED_HERE);
      }
    }
  }

  /** Sets the token with which new connections log in; null for none. */
  void token(String token) {
    this.token = token;
  }

  // ------------------------------------------------------------------------------------------ unanswered calls

  @Override
  public void ended(Connection connection, Failure failure, List<Call<?>> unanswered) {
    connections.remove(connection);
    if (failure != Failure.CLOSED_HERE) {
      route.advance(connection.address, failure);
    }
    // After the route has advanced: the sender thread reconnects as soon as this is null.
    current.compareAndSet(connection, null);
    for (Call<?> call : unanswered) {
      Throwable cause = failure.cause();
      ControllerUnreachable error =
          closed ? new ClientClosed() : failure.tls() ? route.unreachable(cause) : route.broken(cause);
      if (!closed && call.isIdempotent()) {
        retry(call, error);
      } else {
        call.fail(error);
      }
    }
  }

  @Override
  public void refused(Connection connection, Call<?> call, NotLeader answer) {
    if (route.size() == 1) {
      call.fail(answer);
      return;
    }
    if (current.get() == connection) {
      route.advance(connection.address, new Failure("a standby", false, answer));
      route.prefer(answer.address);
      current.compareAndSet(connection, null);
      connection.retire();
    }
    // The standby did not execute the call, so that even one that is not idempotent may be repeated.
    retry(call, route.unreachable(answer));
  }

  private void retry(Call<?> call, ControllerUnreachable otherwise) {
    if (call.countAttempt(route.size())) {
      toSend.add(call);
    } else {
      call.fail(otherwise);
    }
  }

  // ------------------------------------------------------------------------------------------------- closing

  @Override
  public void close() {
    closed = true;
    timer.shutdownNow();
    pending.forEach(call -> call.fail(new ClientClosed()));
    dialer.stop();
    sender.interrupt();
    List<Connection> open = List.copyOf(connections);
    open.forEach(connection -> connection.end(Failure.CLOSED_HERE));
    if (ClientThread.isCurrent()) {
      return;
    }
    try {
      sender.join(CLOSE_MILLIS);
      for (Connection connection : open) {
        connection.join(CLOSE_MILLIS);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
