package org.blast.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Spark's own factory of broadcasts, and somebody who is told. Whatever he does, Spark notices nothing of it. */
final class WatchedFactory implements InvocationHandler {
  private static final Logger LOG = LoggerFactory.getLogger(WatchedFactory.class);
  private static final int MADE_ID = 2;
  private static final int UNWANTED_ID = 0;

  /** How a broadcast is cut; null where it is not cut. */
  interface Cutting {
    /** Of this one. */
    SparkInternals.Cut of(Object broadcast) throws IllegalAccessException;
  }

  private final Object original;
  private final Cutting cutting;
  private final SparkInternals.Watcher watcher;

  WatchedFactory(Object original, Cutting cutting, SparkInternals.Watcher watcher) {
    this.original = original;
    this.cutting = cutting;
    this.watcher = watcher;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    Object result;
    try {
      result = method.invoke(original, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
    try {
      tell(method.getName(), arguments, result);
    } catch (Throwable error) {
      LOG.warn("Blast has missed a broadcast, which Spark fetches as always", error);
    }
    return result;
  }

  private void tell(String method, Object[] arguments, Object result) throws IllegalAccessException {
    if (method.equals("newBroadcast")) {
      SparkInternals.Cut cut = cutting.of(result);
      if (cut != null) {
        watcher.made((Long) arguments[MADE_ID], cut);
      }
    } else if (method.equals("unbroadcast")) {
      watcher.unwanted((Long) arguments[UNWANTED_ID]);
    }
  }
}
