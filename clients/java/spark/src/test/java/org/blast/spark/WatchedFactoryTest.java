package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Whoever watches broadcasts hears of them; whatever he throws, the job has its broadcast. */
class WatchedFactoryTest {
  /** Like Spark's. */
  public interface Factory {
    /** Make one. */
    Object newBroadcast(Object value, boolean local, long id, boolean serialized, Object tag);

    /** Forget one. */
    void unbroadcast(long id, boolean fromDriver, boolean blocking);

    /** End. */
    void stop();
  }

  private static final SparkInternals.Cut CUT = new SparkInternals.Cut(3, 100);
  private final List<String> heard = new ArrayList<>();
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
      heard.add("original " + id);
    }

    @Override
    public void stop() {
      heard.add("stop");
    }
  };

  @Test
  void broadcastsAreTold() {
    Factory watched = watched(new SparkInternals.Watcher() {
      @Override
      public void made(long broadcast, SparkInternals.Cut cut) {
        heard.add("made " + broadcast + " " + cut.pieces());
      }

      @Override
      public void unwanted(long broadcast) {
        heard.add("unwanted " + broadcast);
      }
    });
    assertSame("value", watched.newBroadcast("value", false, 7, false, null));
    assertEquals(1, watched.newBroadcast(1, false, 8, false, null));
    watched.unbroadcast(7, true, false);
    watched.stop();
    assertEquals(List.of("made 7 3", "original 7", "unwanted 7", "stop"), heard);
    assertEquals(original.hashCode(), watched.hashCode());
  }

  @Test
  void whatTheWatcherThrowsIsNotFelt() {
    for (Throwable error : List.of(new IllegalStateException(), new NoClassDefFoundError("org/blast/x"))) {
      Factory watched = watched(new SparkInternals.Watcher() {
        @Override
        public void made(long broadcast, SparkInternals.Cut cut) {
          WatchedFactoryTest.<RuntimeException>fail(error);
        }

        @Override
        public void unwanted(long broadcast) {
          WatchedFactoryTest.<RuntimeException>fail(error);
        }
      });
      assertSame("value", watched.newBroadcast("value", false, 7, false, null));
      watched.unbroadcast(7, true, false);
    }
  }

  @Test
  void whatSparkThrowsIsThrown() {
    Factory watched = watched(null);
    Throwable error =
        assertThrows(IllegalStateException.class, () -> watched.newBroadcast(null, false, 7, false, null));
    assertEquals("Spark's own", error.getMessage());
  }

  @Test
  void aThreadOfOursEndsNoProcess() throws InterruptedException {
    // Spark's handler in an executor ends it.
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

  private Factory watched(SparkInternals.Watcher watcher) {
    WatchedFactory handler = new WatchedFactory(original, made -> made instanceof String ? CUT : null, watcher);
    return (Factory) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Factory.class}, handler);
  }
}
