package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Tests that the proxy notifies its listener, and that exceptions of the listener do not reach Spark. */
class FactoryProxyTest {
  /** An interface like that of Spark's factory. */
  public interface Factory {
    /** Create a broadcast. */
    Object newBroadcast(Object value, boolean local, long id, boolean serialized, Object tag);

    /** Remove a broadcast. */
    void unbroadcast(long id, boolean fromDriver, boolean blocking);

    /** Stop the factory. */
    void stop();
  }

  private static final SparkInternals.Cut CUT = new SparkInternals.Cut(3, 100);
  private final List<String> events = new ArrayList<>();
  private final Factory original = new Factory() {
    @Override
    public Object newBroadcast(Object value, boolean local, long id, boolean serialized, Object tag) {
      if (value == null) {
        throw new IllegalStateException("Spark's own");
      }
      return value;
    }

    @Override
    public void unbroadcast(long id, boolean fromDriver, boolean blocking) {
      events.add("original " + id);
    }

    @Override
    public void stop() {
      events.add("stop");
    }
  };

  @Test
  void listenerIsNotifiedOfBroadcasts() {
    Factory watched = watched(new SparkInternals.BroadcastListener() {
      @Override
      public void created(long broadcast, SparkInternals.Cut cut) {
        events.add("created " + broadcast + " " + cut.pieces());
      }

      @Override
      public void removed(long broadcast) {
        events.add("removed " + broadcast);
      }
    });
    assertSame("value", watched.newBroadcast("value", false, 7, false, null));
    assertEquals(1, watched.newBroadcast(1, false, 8, false, null));
    watched.unbroadcast(7, true, false);
    watched.stop();
    assertEquals(List.of("created 7 3", "original 7", "removed 7", "stop"), events);
    assertEquals(original.hashCode(), watched.hashCode());
  }

  @Test
  void exceptionsOfTheListenerAreCaught() {
    for (Throwable error : List.of(new IllegalStateException(), new NoClassDefFoundError("org/blast/x"))) {
      Factory watched = watched(new SparkInternals.BroadcastListener() {
        @Override
        public void created(long broadcast, SparkInternals.Cut cut) {
          FactoryProxyTest.<RuntimeException>fail(error);
        }

        @Override
        public void removed(long broadcast) {
          FactoryProxyTest.<RuntimeException>fail(error);
        }
      });
      assertSame("value", watched.newBroadcast("value", false, 7, false, null));
      watched.unbroadcast(7, true, false);
    }
  }

  @Test
  void exceptionsOfSparkAreRethrown() {
    Factory watched = watched(null);
    Throwable error =
        assertThrows(IllegalStateException.class, () -> watched.newBroadcast(null, false, 7, false, null));
    assertEquals("Spark's own", error.getMessage());
  }

  @Test
  void errorInADaemonThreadDoesNotEndTheProcess() throws InterruptedException {
    // Spark's default handler in an executor ends the process.
    CountDownLatch uncaught = new CountDownLatch(1);
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> uncaught.countDown());
    try {
      Thread thread = Daemon.start("test", () -> {
        throw new NoClassDefFoundError("org/blast/x");
      });
      thread.join();
      assertEquals(1, uncaught.getCount());
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void fail(Throwable error) throws E {
    throw (E) error;
  }

  private Factory watched(SparkInternals.BroadcastListener listener) {
    FactoryProxy handler = new FactoryProxy(original, made -> made instanceof String ? CUT : null, listener);
    return (Factory) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Factory.class}, handler);
  }
}
