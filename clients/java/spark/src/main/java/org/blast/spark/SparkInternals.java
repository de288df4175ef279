package org.blast.spark;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * What the plugin needs of Spark's inside, found by name when it starts: the shim between it and each version of Spark.
 *
 * <p>All of it is the same from 3.5 on, but {@code putBytes}, which takes two more arguments since 4.3. Where anything
 * is missing or of another type, {@link #find} says what, and the plugin switches itself off.
 */
final class SparkInternals implements PieceStore {
  private static final Lookup LOOKUP = MethodHandles.publicLookup();
  private static final boolean TELL_MASTER = true;

  private final ClassLoader loader;
  private final MethodHandle environment;
  private final MethodHandle blockManager;
  private final MethodHandle broadcastManager;
  private final MethodHandle blockId;
  private final MethodHandle status;
  private final MethodHandle localBytes;
  private final MethodHandle release;
  private final MethodHandle byteBuffer;
  private final MethodHandle chunked;
  private final MethodHandle isDefined;
  private final MethodHandle content;
  private final MethodHandle withLock;
  private final MethodHandle lock;
  private final MethodHandle put;
  private final MethodHandle bus;
  private final MethodHandle ownId;
  private final MethodHandle ownHost;
  private final MethodHandle post;
  private final MethodHandle master;
  private final MethodHandle locations;
  private final MethodHandle length;
  private final MethodHandle element;
  private final MethodHandle isDriver;
  private final MethodHandle peerPort;
  private final MethodHandle peerExecutor;
  private final MethodHandle blockName;
  private final MethodHandle transfers;
  private final MethodHandle fetch;
  private final MethodHandle fetched;
  private final Object none;
  private final List<Object> putTail;
  private final Object level;
  private final Class<?> function;
  private final Class<?> torrent;
  private final Class<?> factoryType;
  private final Field pieces;
  private final Field pieceBytes;
  private final Field factory;

  /**
   * How a broadcast is cut.
   *
   * @param pieces how many there are
   * @param pieceBytes bytes of each but the last
   */
  record Cut(int pieces, int pieceBytes) {}

  /** Is told what happens to broadcasts in the driver, on the thread of whoever does it. */
  interface Watcher {
    /** One has been made. */
    void made(long broadcast, Cut cut);

    /** Nobody wants it any more. */
    void unwanted(long broadcast);
  }

  /**
   * Those of the Spark that is running.
   *
   * @throws SwitchedOff where this version has not what we need
   */
  static SparkInternals find() throws SwitchedOff {
    return in(SparkInternals.class.getClassLoader());
  }

  /**
   * Those of the Spark that this loader has.
   *
   * @throws SwitchedOff where it has not what we need
   */
  static SparkInternals in(ClassLoader loader) throws SwitchedOff {
    try {
      return new SparkInternals(loader);
    } catch (Throwable error) {
      throw new SwitchedOff("this version of Spark is built in another way (" + error + ")", error);
    }
  }

  private SparkInternals(ClassLoader loader) throws Throwable {
    this.loader = loader;
    Class<?> env = spark("SparkEnv");
    Class<?> manager = spark("storage.BlockManager");
    Class<?> broadcasts = spark("broadcast.BroadcastManager");
    Class<?> id = spark("storage.BlockId");
    Class<?> buffer = spark("util.io.ChunkedByteBuffer");
    Class<?> storage = spark("storage.StorageLevel");
    Class<?> option = type("scala.Option");
    Class<?> tag = type("scala.reflect.ClassTag");
    function = type("scala.Function0");
    torrent = spark("broadcast.TorrentBroadcast");
    factoryType = spark("broadcast.BroadcastFactory");

    environment = LOOKUP.findStatic(env, "get", MethodType.methodType(env));
    blockManager = method(env, "blockManager", manager);
    broadcastManager = method(env, "broadcastManager", broadcasts);
    blockId = constructor(spark("storage.BroadcastBlockId"), long.class, String.class);
    status = method(manager, "getStatus", option, id);
    localBytes = method(manager, "getLocalBytes", option, id);
    release = method(manager, "releaseLock", void.class, id, option);
    byteBuffer = method(spark("storage.BlockData"), "toByteBuffer", ByteBuffer.class);
    chunked = constructor(buffer, ByteBuffer.class);
    isDefined = method(option, "isDefined", boolean.class);
    content = method(option, "get", Object.class);
    none = LOOKUP.findStatic(option, "empty", MethodType.methodType(option)).invoke();
    level = LOOKUP.findStatic(storage, "MEMORY_AND_DISK_SER", MethodType.methodType(storage)).invoke();

    Object anyTag = method(type("scala.reflect.ClassTag$"), "apply", tag, Class.class)
        .invoke(module("scala.reflect.ClassTag$"), Object.class);
    MethodHandle before43 = optional(manager, "putBytes", boolean.class, id, buffer, storage, boolean.class, tag);
    if (before43 != null) {
      put = before43;
      putTail = List.of(TELL_MASTER, anyTag);
    } else {
      put = method(manager, "putBytes", boolean.class, id, buffer, storage, boolean.class, option, boolean.class, tag);
      putTail = List.of(TELL_MASTER, none, false, anyTag);
    }

    Class<?> locks = spark("util.KeyLock");
    Class<?> companion = spark("broadcast.TorrentBroadcast$");
    lock = method(companion, "org$apache$spark$broadcast$TorrentBroadcast$$torrentBroadcastLock", locks)
        .bindTo(module(companion.getName()));
    withLock = method(locks, "withLock", Object.class, Object.class, function);
    Class<?> managerId = spark("storage.BlockManagerId");
    ownId = method(manager, "blockManagerId", managerId);
    ownHost = method(managerId, "host", String.class);
    Class<?> blockMaster = spark("storage.BlockManagerMaster");
    master = method(manager, "master", blockMaster);
    locations = locations(blockMaster, id);
    length = method(type("scala.collection.Seq"), "length", int.class);
    element = method(type("scala.collection.Seq"), "apply", Object.class, int.class);
    isDriver = method(managerId, "isDriver", boolean.class);
    peerPort = method(managerId, "port", int.class);
    peerExecutor = method(managerId, "executorId", String.class);
    blockName = method(id, "name", String.class);
    Class<?> service = spark("network.BlockTransferService");
    Class<?> managed = spark("network.buffer.ManagedBuffer");
    transfers = method(manager, "blockTransferService", service);
    fetch = method(service, "fetchBlockSync", managed, String.class, int.class, String.class, String.class,
        spark("network.shuffle.DownloadFileManager"));
    fetched = method(managed, "nioByteBuffer", ByteBuffer.class);
    Class<?> listeners = spark("scheduler.LiveListenerBus");
    bus = method(spark("SparkContext"), "listenerBus", listeners);
    post = method(listeners, "post", void.class, spark("scheduler.SparkListenerEvent"));
    pieces = field(torrent, "numBlocks");
    pieceBytes = field(torrent, "blockSize");
    factory = field(broadcasts, "broadcastFactory");
  }

  /** Have all broadcasts that are made from now on told to somebody. */
  void watch(Watcher watcher) {
    try {
      Object manager = call(broadcastManager, call(environment));
      InvocationHandler watched = new WatchedFactory(factory.get(manager), this::cut, watcher);
      factory.set(manager, Proxy.newProxyInstance(loader, new Class<?>[] {factoryType}, watched));
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  private Cut cut(Object broadcast) throws IllegalAccessException {
    return torrent.isInstance(broadcast) ? new Cut(pieces.getInt(broadcast), pieceBytes.getInt(broadcast)) : null;
  }

  /**
   * Write the pieces of one file of a broadcast that is here, one behind the other.
   *
   * @throws IOException where one is gone, has not the size that its place needs, or cannot be written
   */
  void copy(long broadcast, Cut cut, PieceFile file, FileChannel to) throws IOException {
    Object manager = call(blockManager, call(environment));
    for (int piece = file.first(); piece < file.first() + file.pieces(); piece++) {
      Object id = piece(broadcast, piece);
      Object found = call(localBytes, manager, id);
      if (!(boolean) call(isDefined, found)) {
        throw new IOException("piece " + piece + " is not here any more");
      }
      try {
        ByteBuffer data = (ByteBuffer) call(byteBuffer, call(content, found));
        if (data.remaining() != cut.pieceBytes() && piece + 1 < cut.pieces()) {
          throw new IOException("piece " + piece + " has " + data.remaining() + " bytes");
        }
        while (data.hasRemaining()) {
          to.write(data);
        }
      } finally {
        call(release, manager, id, none);
      }
    }
  }

  /** This host, as Spark calls it. */
  String host() {
    return (String) call(ownHost, call(ownId, call(blockManager, call(environment))));
  }

  @Override
  public boolean has(long broadcast, int piece) {
    return (boolean) call(isDefined, call(status, call(blockManager, call(environment)), piece(broadcast, piece)));
  }

  @Override
  public boolean put(long broadcast, int piece, ByteBuffer data) {
    List<Object> arguments = new ArrayList<>();
    arguments.add(call(blockManager, call(environment)));
    arguments.addAll(List.of(piece(broadcast, piece), call(chunked, data), level));
    arguments.addAll(putTail);
    return (boolean) call(put, arguments.toArray());
  }

  @Override
  public ByteBuffer fetch(long broadcast, int piece) {
    Object manager = call(blockManager, call(environment));
    Object id = piece(broadcast, piece);
    Object locations = call(this.locations, call(master, manager), id);
    List<Object> executors = new ArrayList<>();
    for (int number = 0; number < (int) call(length, locations); number++) {
      Object location = call(element, locations, number);
      // The driver's link carries the broadcast to the others meanwhile.
      if (!(boolean) call(isDriver, location)) {
        executors.add(location);
      }
    }
    if (executors.isEmpty()) {
      return null;
    }
    Object from = executors.get(ThreadLocalRandom.current().nextInt(executors.size()));
    Object data = call(
        fetch, call(transfers, manager), call(ownHost, from), call(peerPort, from), call(peerExecutor, from),
        call(blockName, id), null);
    return (ByteBuffer) call(fetched, data);
  }

  @Override
  public void holding(long broadcast, Runnable action) {
    Object body = Proxy.newProxyInstance(loader, new Class<?>[] {function}, (proxy, method, arguments) -> {
      if (method.getName().equals("apply")) {
        action.run();
      }
      return null;
    });
    call(withLock, call(lock), call(blockId, broadcast, ""), body);
  }

  /** Tell Spark's listeners, its event log among them. */
  void publish(SparkContext context, SparkListenerEvent event) {
    call(post, call(bus, context), event);
  }

  private Object piece(long broadcast, int piece) {
    return call(blockId, broadcast, "piece" + piece);
  }

  private static Object call(MethodHandle handle, Object... arguments) {
    try {
      return handle.invokeWithArguments(arguments);
    } catch (RuntimeException | Error error) {
      throw error;
    } catch (Throwable error) {
      throw new IllegalStateException(error);
    }
  }

  private Class<?> spark(String name) throws ClassNotFoundException {
    return type("org.apache.spark." + name);
  }

  private Class<?> type(String name) throws ClassNotFoundException {
    return Class.forName(name, false, loader);
  }

  private Object module(String name) throws Throwable {
    Class<?> module = type(name);
    return LOOKUP.findStaticGetter(module, "MODULE$", module).invoke();
  }

  private static MethodHandle constructor(Class<?> owner, Class<?>... parameters) throws ReflectiveOperationException {
    return LOOKUP.findConstructor(owner, MethodType.methodType(void.class, parameters));
  }

  private static MethodHandle method(Class<?> owner, String name, Class<?> result, Class<?>... parameters)
      throws ReflectiveOperationException {
    return LOOKUP.findVirtual(owner, name, MethodType.methodType(result, parameters));
  }

  /** Its result is another type in Scala 2.12 than from 2.13 on. */
  private MethodHandle locations(Class<?> blockMaster, Class<?> id) throws ReflectiveOperationException {
    MethodHandle from213 = optional(blockMaster, "getLocations", type("scala.collection.immutable.Seq"), id);
    return from213 == null ? method(blockMaster, "getLocations", type("scala.collection.Seq"), id) : from213;
  }

  private static MethodHandle optional(Class<?> owner, String name, Class<?> result, Class<?>... parameters)
      throws IllegalAccessException {
    try {
      return LOOKUP.findVirtual(owner, name, MethodType.methodType(result, parameters));
    } catch (NoSuchMethodException error) {
      return null;
    }
  }

  private static Field field(Class<?> owner, String name) throws ReflectiveOperationException {
    Field field = owner.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
