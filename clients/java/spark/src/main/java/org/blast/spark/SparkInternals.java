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
 * Access to internal classes of Spark, looked up by name at the start: the shim between the plugin and Spark's
 * versions.
 *
 * <p>These classes are the same since 3.5, except {@code putBytes}, which has two more parameters since 4.3. If a
 * member is missing or has another type, {@link #find} throws an exception that names it, and the plugin disables
 * itself.
 */
final class SparkInternals implements PieceStore {
  private static final Lookup LOOKUP = MethodHandles.publicLookup();
  private static final boolean NOTIFY_MASTER = true;

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
   * The division of a broadcast into pieces.
   *
   * @param pieces number of pieces
   * @param pieceBytes size of each piece in bytes; the last may be smaller
   */
  record Cut(int pieces, int pieceBytes) {}

  /** A receiver of the events of broadcasts in the driver, called in Spark's threads. */
  interface BroadcastListener {
    /** Handle a new broadcast. */
    void created(long broadcast, Cut cut);

    /** Handle the removal of a broadcast. */
    void removed(long broadcast);
  }

  /**
   * Look up the internals of the running Spark.
   *
   * @throws PluginDisabled if this version lacks a required member
   */
  static SparkInternals find() throws PluginDisabled {
    return in(SparkInternals.class.getClassLoader());
  }

  /**
   * Look up the internals of the Spark of a class loader.
   *
   * @throws PluginDisabled if this version lacks a required member
   */
  static SparkInternals in(ClassLoader loader) throws PluginDisabled {
    try {
      return new SparkInternals(loader);
    } catch (Throwable error) {
      throw new PluginDisabled("this version of Spark is not supported (" + error
          + "): docs/how-to/spark.md lists the versions", error);
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
      putTail = List.of(NOTIFY_MASTER, anyTag);
    } else {
      put = method(manager, "putBytes", boolean.class, id, buffer, storage, boolean.class, option, boolean.class, tag);
      putTail = List.of(NOTIFY_MASTER, none, false, anyTag);
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

  /** Notify a listener of all broadcasts from now on. */
  void watch(BroadcastListener listener) {
    try {
      Object manager = call(broadcastManager, call(environment));
      InvocationHandler proxy = new FactoryProxy(factory.get(manager), this::cut, listener);
      factory.set(manager, Proxy.newProxyInstance(loader, new Class<?>[] {factoryType}, proxy));
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  private Cut cut(Object broadcast) throws IllegalAccessException {
    return torrent.isInstance(broadcast) ? new Cut(pieces.getInt(broadcast), pieceBytes.getInt(broadcast)) : null;
  }

  /**
   * Write the pieces of one file of a local broadcast in order.
   *
   * @throws IOException if a piece is missing, has an unexpected size, or cannot be written
   */
  void copy(long broadcast, Cut cut, PieceFile file, FileChannel to) throws IOException {
    Object manager = call(blockManager, call(environment));
    for (int piece = file.first(); piece < file.first() + file.pieces(); piece++) {
      Object id = piece(broadcast, piece);
      Object found = call(localBytes, manager, id);
      if (!(boolean) call(isDefined, found)) {
        throw new IOException("piece " + piece + " is no longer in Spark's store");
      }
      try {
        ByteBuffer data = (ByteBuffer) call(byteBuffer, call(content, found));
        if (data.remaining() != cut.pieceBytes() && piece + 1 < cut.pieces()) {
          throw new IOException("piece " + piece + " has an unexpected size of " + data.remaining() + " bytes");
        }
        while (data.hasRemaining()) {
          to.write(data);
        }
      } finally {
        call(release, manager, id, none);
      }
    }
  }

  /** Return Spark's name of this host. */
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
      // The driver's link is busy with the files of this broadcast.
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
  public void blockReaders(long broadcast, Runnable action) {
    Object body = Proxy.newProxyInstance(loader, new Class<?>[] {function}, (proxy, method, arguments) -> {
      if (method.getName().equals("apply")) {
        action.run();
      }
      return null;
    });
    call(withLock, call(lock), call(blockId, broadcast, ""), body);
  }

  /** Post an event to Spark's listeners, which include its event log. */
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

  /** Return `getLocations`, whose result type differs between Scala 2.12 and 2.13. */
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
