package org.blast.client;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/**
 * Measures calls on one warm connection; benchmarks/java_client.py starts it, and the controller that it asks.
 *
 * <p>Arguments: HOST:PORT KEY CALLS WAITS. KEY is a request that has one event and will have no other. One call of each
 * kind in turn: the client's ping and its status, and both of them bare (a blocking socket, a frame that was encoded
 * before, an answer that nobody decodes). Then so many calls wait, while it pings. Prints one line of JSON, in
 * microseconds.
 */
public final class Bench {
  private static final int WARM_UP = 5_000;
  private static final Duration PATIENCE = Duration.ofMinutes(5);

  private Bench() {}

  @FunctionalInterface
  private interface Action {
    void run() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    String key = arguments[1];
    int calls = Integer.parseInt(arguments[2]);
    int waits = Integer.parseInt(arguments[3]);
    try (Bare bare = new Bare(Address.parse(arguments[0]), key);
        BlastClient client = BlastClient.builder().addresses(arguments[0]).build()) {
      List<Action> inTurn = List.of(bare::ping, client::ping, bare::status, () -> client.status(key));
      measure(inTurn, Math.min(calls, WARM_UP));
      long[][] took = measure(inTurn, calls);
      int threads = Thread.getAllStackTraces().size();
      List<CompletableFuture<?>> waiting = new ArrayList<>();
      for (int number = 0; number < waits; number++) {
        waiting.add(client.async().awaitEvent(key, 1, PATIENCE));
      }
      client.ping();
      long[][] beside = measure(List.of(client::ping), Math.min(calls, WARM_UP));
      long stillWaiting = waiting.stream().filter(one -> !one.isDone()).count();
      System.out.printf(
          "{\"bare_ping\": %s, \"ping\": %s, \"bare_status\": %s, \"status\": %s, \"ping_beside_waits\": %s,"
              + " \"waits\": %d, \"threads_before\": %d, \"threads_with_waits\": %d}%n",
          figures(took[0]),
          figures(took[1]),
          figures(took[2]),
          figures(took[3]),
          figures(beside[0]),
          stillWaiting,
          threads,
          Thread.getAllStackTraces().size());
    }
  }

  private static long[][] measure(List<Action> actions, int times) throws Exception {
    long[][] took = new long[actions.size()][times];
    for (int time = 0; time < times; time++) {
      for (int number = 0; number < took.length; number++) {
        long begin = System.nanoTime();
        actions.get(number).run();
        took[number][time] = System.nanoTime() - begin;
      }
    }
    return took;
  }

  private static String figures(long[] nanoseconds) {
    long[] sorted = nanoseconds.clone();
    Arrays.sort(sorted);
    return String.format(
        Locale.ROOT, "{\"p50\": %.1f, \"p99\": %.1f}", at(sorted, 0.5) / 1e3, at(sorted, 0.99) / 1e3);
  }

  private static long at(long[] sorted, double share) {
    return sorted[(int) Math.min(sorted.length - 1, Math.round(share * sorted.length))];
  }

  /** Nothing but the round trip. */
  private static final class Bare implements AutoCloseable {
    private final Socket socket;
    private final OutputStream out;
    private final DataInputStream in;
    private final byte[] ping = Codec.frame(1, codec -> codec.send_ping());
    private final byte[] status;

    Bare(Address address, String key) throws IOException {
      status = Codec.frame(2, codec -> codec.send_status(key));
      socket = new Socket(address.host(), address.port());
      socket.setTcpNoDelay(true);
      out = socket.getOutputStream();
      in = new DataInputStream(socket.getInputStream());
    }

    void ping() throws IOException {
      out.write(ping);
      Frames.read(in);
    }

    void status() throws IOException {
      out.write(status);
      Frames.read(in);
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
