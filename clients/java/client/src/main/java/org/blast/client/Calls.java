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
 * The calls of a client. One thread, the sender, connects, logs in and writes, so that no caller ever waits for the
 * network but by its future; one receives on each connection; one watches the time.
 */
final class Calls implements Connection.Owner, AutoCloseable {
  private static final long LONGEST_WAIT = TimeUnit.DAYS.toNanos(36_500);
  private static final long MILLISECONDS_TO_END = 2_000;

  private final Route route;
  private final Dialer dialer;
  private final Duration timeout;
  private final int most;
  private final Semaphore places;
  private final AtomicInteger sequence = new AtomicInteger();
  private final Set<Call<?>> underWay = ConcurrentHashMap.newKeySet();
  private final BlockingQueue<Call<?>> toSend = new LinkedBlockingQueue<>();
  private final AtomicReference<Connection> current = new AtomicReference<>();
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
  private final ScheduledThreadPoolExecutor clock;
  private final Thread sender = new OwnThread(this::send, "sender");
  private volatile String token;
  private volatile boolean closed;

  Calls(Route route, Dialer dialer, Duration timeout, int most, String token) {
    this.route = route;
    this.dialer = dialer;
    this.timeout = timeout;
    this.most = most;
    this.places = new Semaphore(most);
    this.token = token;
    this.clock = new ScheduledThreadPoolExecutor(1, work -> new OwnThread(work, "clock"));
    clock.setRemoveOnCancelPolicy(true);
    sender.start();
  }

  // ------------------------------------------------------------------------------------------- making calls

  /** A call that is answered at once. */
  <A> CompletableFuture<A> make(String name, Codec.Encoder encoder, Codec.Decoder<A> decoder) {
    return begin(name, 0, (codec, left) -> encoder.encode(codec), decoder);
  }

  /** A call for which the controller waits until something happens, at most so long. */
  <A> CompletableFuture<A> make(String name, Duration wait, Call.Encoder encoder, Codec.Decoder<A> decoder) {
    if (wait == null || wait.isNegative() || wait.compareTo(Duration.ofNanos(LONGEST_WAIT)) > 0) {
      String sentence = "the time to wait must be a duration, not negative and not above a hundred years, and not ";
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
    if (!places.tryAcquire()) {
      return CompletableFuture.failedFuture(new TooManyCalls(most));
    }
    underWay.add(call);
    Future<?> end = expireAfter(call, wait + timeout.toNanos());
    call.future.whenComplete((answer, error) -> over(call, end));
    toSend.add(call);
    if (closed) {
      call.fail(new ClientClosed());
    }
    return call.future;
  }

  private int nextSequence() {
    return sequence.updateAndGet(latest -> latest % Integer.MAX_VALUE + 1);
  }

  /** Whatever ended it: an answer, its time, its caller. */
  private void over(Call<?> call, Future<?> end) {
    end.cancel(false);
    underWay.remove(call);
    places.release();
    if (call.connection() != null) {
      call.connection().forget(call);
    }
  }

  private Future<?> expireAfter(Call<?> call, long nanos) {
    try {
      return clock.schedule(() -> expire(call, nanos), nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException closedMeanwhile) {
      return CompletableFuture.completedFuture(null);
    }
  }

  private void expire(Call<?> call, long nanos) {
    // What was not sent yet may be waiting behind something that cannot be written.
    Connection connection = call.connection() != null ? call.connection() : current.get();
    String where = connection == null ? route.toString() : connection.address.toString();
    call.fail(new NoAnswerInTime(where, nanos / 1e9));
    if (connection != null && !connection.wasHeardSince(call.sentAt())) {
      // It may be dead without a sign: whoever waits on it is better off elsewhere.
      connection.end(new Failure("nothing came within the time", false, null));
    }
  }

  // ------------------------------------------------------------------------------------------------- sending

  private void send() {
    while (!closed) {
      try {
        send(toSend.take());
      } catch (InterruptedException end) {
        // By who closes.
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
        note(connection);
        again(call, route.broken(null));
      }
    } catch (RuntimeException failure) {
      // Who waits behind it would wait as long, for the same end.
      List<Call<?>> behind = new ArrayList<>(List.of(call));
      toSend.drainTo(behind);
      behind.forEach(one -> one.fail(failure));
    }
  }

  private Connection connected() throws InterruptedException {
    Connection connection = current.get();
    if (connection != null) {
      Failure failure = connection.failure();
      if (failure == null) {
        return connection;
      }
      note(connection);
    }
    Duration patience = timeout.dividedBy(route.size());
    for (int tries = 0; tries < route.size(); tries++) {
      Address address = route.current();
      try {
        return connect(address, patience);
      } catch (IOException error) {
        route.leave(address, Failure.connecting(error));
      } catch (ControllerUnreachable brokenAtLogin) {
        // Why is noted already.
      }
    }
    throw closed ? new ClientClosed() : route.unreachable(null);
  }

  /** Why it has ended: that may have been just now, and nobody have said so yet. */
  private void note(Connection connection) {
    Failure failure = connection.failure();
    if (failure != null && failure != Failure.CLOSED_HERE) {
      route.leave(connection.address, failure);
    }
  }

  private Connection connect(Address address, Duration patience) throws IOException, InterruptedException {
    route.forgive(address);
    Connection connection = dialer.dial(address, patience, this);
    connections.add(connection);
    if (closed) {
      connection.end(Failure.CLOSED_HERE);
      throw new ClientClosed();
    }
    if (token != null) {
      logIn(connection, token, patience);
    }
    current.set(connection);
    return connection;
  }

  /** Where it fails the connection is closed: nothing else may be asked by somebody who is not who they should be. */
  private void logIn(Connection connection, String token, Duration patience) throws IOException, InterruptedException {
    Call<Void> login = new Call<>("login", nextSequence(), 0, (c, left) -> c.send_login(token), Codec::loggedIn);
    boolean loggedIn = false;
    try {
      connection.send(login);
      login.future.get(patience.toNanos(), TimeUnit.NANOSECONDS);
      loggedIn = true;
    } catch (TimeoutException late) {
      throw new IOException("no answer to the login within " + patience.toMillis() + " ms", late);
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof BlastException failure) {
        throw failure;
      }
      String sentence = "the controller at " + connection.address + " does not take the token: ";
      throw new BadCredentials(sentence + Sentences.of(failed), failed.getCause());
    } finally {
      if (!loggedIn) {
        connection.end(Failure.CLOSED_HERE);
      }
    }
  }

  /** From now on every new connection begins with this login; null: with none. */
  void token(String token) {
    this.token = token;
  }

  // -------------------------------------------------------------------------------- what did not come to an end

  @Override
  public void ended(Connection connection, Failure failure, List<Call<?>> unanswered) {
    connections.remove(connection);
    if (failure != Failure.CLOSED_HERE) {
      route.leave(connection.address, failure);
    }
    // Only now: the sender then goes where the route leads.
    current.compareAndSet(connection, null);
    for (Call<?> call : unanswered) {
      Throwable cause = failure.cause();
      ControllerUnreachable lost =
          closed ? new ClientClosed() : failure.tls() ? route.unreachable(cause) : route.broken(cause);
      if (!closed && call.isSafeToRepeat()) {
        again(call, lost);
      } else {
        call.fail(lost);
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
      route.leave(connection.address, new Failure("it stands by", false, answer));
      route.prefer(answer.address);
      current.compareAndSet(connection, null);
      connection.retire();
    }
    // It was refused and not carried out: it may be asked elsewhere, whatever it is.
    again(call, route.unreachable(answer));
  }

  private void again(Call<?> call, ControllerUnreachable otherwise) {
    if (call.mayTryAgain(route.size())) {
      toSend.add(call);
    } else {
      call.fail(otherwise);
    }
  }

  // ------------------------------------------------------------------------------------------------- closing

  @Override
  public void close() {
    closed = true;
    clock.shutdownNow();
    underWay.forEach(call -> call.fail(new ClientClosed()));
    dialer.stop();
    sender.interrupt();
    List<Connection> open = List.copyOf(connections);
    open.forEach(connection -> connection.end(Failure.CLOSED_HERE));
    if (OwnThread.isCurrent()) {
      return;
    }
    try {
      sender.join(MILLISECONDS_TO_END);
      for (Connection connection : open) {
        connection.join(MILLISECONDS_TO_END);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
