package org.blast.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A proxy of Spark's broadcast factory that notifies a listener. Exceptions of the listener do not reach Spark. */
final class FactoryProxy implements InvocationHandler {
  private static final Logger LOG = LoggerFactory.getLogger(FactoryProxy.class);
  private static final int CREATED_ID = 2;
  private static final int REMOVED_ID = 0;

  /** A function from broadcasts to their division into pieces. */
  interface Cutter {
    /** Return the division of this broadcast; null if it has no pieces. */
    SparkInternals.Cut of(Object broadcast) throws IllegalAccessException;
  }

  private final Object original;
  private final Cutter cutter;
  private final SparkInternals.BroadcastListener listener;

  FactoryProxy(Object original, Cutter cutter, SparkInternals.BroadcastListener listener) {
    this.original = original;
    this.cutter = cutter;
    this.listener = listener;
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
      notifyListener(method.getName(), arguments, result);
    } catch (Throwable error) {
      LOG.warn("Blast missed a broadcast; Spark fetches it without Blast", error);
    }
    return result;
  }

  private void notifyListener(String method, Object[] arguments, Object result) throws IllegalAccessException {
    if (method.equals("newBroadcast")) {
      SparkInternals.Cut cut = cutter.of(result);
      if (cut != null) {
        listener.created((Long) arguments[CREATED_ID], cut);
      }
    } else if (method.equals("unbroadcast")) {
      listener.removed((Long) arguments[REMOVED_ID]);
    }
  }
}
