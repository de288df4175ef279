package org.blast.spark;

import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The driver's broadcasts, from creation until no executor waits for them. Thread-safe. */
final class Broadcasts implements SparkInternals.BroadcastListener, ExecutorServer.Listener, SenderProcess.Listener,
    Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Broadcasts.class);
  private static final int MAX_AT_ONCE = 16;
  private static final int MAX_JOINING_HOSTS = 64;
  private static final int NONCE_BYTES = 16;
  private static final int THREADS = 4;
  private static final long CLOSE_SECONDS = 3;
  private static final double TYPICAL_LINK_RATE = 1e9;
  private static final long FIRST_PAUSE_NANOS = 5_000_000_000L;
  /** Longer, since a failed attempt costs as much as Blast gains, and executors without an agent gain, too. */
  private static final long FIRST_HOST_PAUSE_NANOS = 60_000_000_000L;

  /** A source of the pieces of broadcasts. */
  interface Pieces {
    /** Write the pieces of one file in order. Throws IOException if a piece is missing or cannot be written. */
    void copy(long broadcast, SparkInternals.Cut cut, PieceFile file, FileChannel to) throws IOException;
  }

  private final PluginSettings settings;
  private final Pieces pieces;
  private final String driverHost;
  private final Consumer<SparkListenerEvent> publish;
  private final PluginMetrics metrics;
  private final SecureRandom random = new SecureRandom();
  /** Broadcasts in sending order, until no reader waits for them. Its lock also guards the fields below. */
  private final Map<Long, BroadcastTransfer> transfers = new LinkedHashMap<>();
  private final Map<Long, JoinBatch> batches = new LinkedHashMap<>();
  private final Backoff backoff = new Backoff(FIRST_PAUSE_NANOS);
  /** Backoffs of hosts whose agent failed while agents of other hosts succeeded. */
  private final Map<String, Backoff> hostBackoffs = new HashMap<>();
  private final ScheduledExecutorService worker = threads("blast-broadcasts", THREADS);
  /** One thread, so that the sender gets `send` before `stop`. Spark's threads never wait for the sender. */
  private final ScheduledExecutorService commands = threads("blast-sender-commands", 1);
  private volatile Supplier<Collection<ExecutorServer.Peer>> connected;
  private volatile Sender sender;
  private volatile String application;

  Broadcasts(
      PluginSettings settings, Pieces pieces, String driverHost, Consumer<SparkListenerEvent> publish,
      PluginMetrics metrics) {
    this.settings = settings;
    this.pieces = pieces;
    this.driverHost = driverHost;
    this.publish = publish;
    this.metrics = metrics;
  }

  /** Start with a supplier of the connected executors, and a sender. */
  void begin(Supplier<Collection<ExecutorServer.Peer>> executors, Sender files) {
    connected = executors;
    sender = files;
  }

  /** Set Spark's application id. */
  void setApplication(String id) {
    application = id;
  }

  // ---------------------------------------------------------------------------------------------- events of Spark

  @Override
  public void created(long broadcast, SparkInternals.Cut cut) {
    long bytes = (long) cut.pieces() * cut.pieceBytes();
    if (cut.pieces() < 2 || bytes - cut.pieceBytes() < settings.threshold()) {
      return;
    }
    if (application == null) {
      metrics.refused("too_early");
      return;
    }
    synchronized (transfers) {
      long now = System.nanoTime();
      if (!backoff.allows(now)) {
        metrics.refused("failed_before");
        return;
      }
      List<ExecutorServer.Peer> peers = new ArrayList<>(connected.get());
      peers.removeIf(this::isOnDriverHost);
      if (peers.isEmpty()) {
        addBatch(new Announcement(broadcast, name(broadcast), cut.pieces(), cut.pieceBytes(), 0, 1, false));
        return;
      }
      int hosts = countHosts(peers);
      Set<ExecutorServer.Peer> relayed =
          peers.stream().filter(peer -> isWithoutAgent(peer, now)).collect(Collectors.toSet());
      if (relayed.size() == peers.size()) {
        metrics.refused("no_agent");
        return;
      }
      if (settings.hold() && HoldTime.sendMillis(bytes, bytesLeft(), linkRate()) > holdMillis(bytes, hosts)) {
        // Small, behind large ones: Spark delivers it to all hosts sooner than the plugin would.
        metrics.refused("link_busy");
        return;
      }
      int files = relayed.isEmpty() ? 1 : Announcement.relayedFiles(cut.pieces(), cut.pieceBytes(), linkRate());
      Announcement announcement =
          new Announcement(broadcast, name(broadcast), cut.pieces(), cut.pieceBytes(), 0, files, false);
      BroadcastTransfer transfer = new BroadcastTransfer(held(announcement, hosts), peers, relayed, now);
      begin(transfer, () -> peers.forEach(peer -> peer.send(Message.of(transfer.announcementTo(peer)))));
    }
  }

  private static int countHosts(Collection<ExecutorServer.Peer> peers) {
    return (int) peers.stream().map(peer -> peer.hello.host()).distinct().count();
  }

  /** Return true if the executor has no agent, or one that failed recently. */
  private boolean isWithoutAgent(ExecutorServer.Peer peer, long now) {
    Backoff ofHost = hostBackoffs.get(peer.hello.host());
    return peer.hello.agent() == null || ofHost != null && !ofHost.allows(now);
  }

  private Announcement held(Announcement announcement, int hosts) {
    return announcement.held(settings.hold() ? holdMillis(announcement.maxBytes(), hosts) : 0);
  }

  private long holdMillis(long bytes, int hosts) {
    return HoldTime.millis(bytes, bytesLeft(), hosts, linkRate());
  }

  private double linkRate() {
    return settings.linkRate() > 0 ? settings.linkRate() : TYPICAL_LINK_RATE;
  }

  /** Return the bytes left of each broadcast in progress. */
  private List<Long> bytesLeft() {
    return transfers.values().stream().filter(BroadcastTransfer::isInProgress).map(BroadcastTransfer::bytesLeft)
        .toList();
  }

  /** Announce a broadcast and copy its files to the spool. Return false if the sender is full or missing. */
  private boolean begin(BroadcastTransfer transfer, Runnable announce) {
    Path spool = sender.spool();
    long broadcast = transfer.announcement.broadcast();
    synchronized (transfers) {
      boolean full = transfers.values().stream().filter(BroadcastTransfer::isInProgress).count() >= MAX_AT_ONCE;
      if (spool == null || full) {
        metrics.refused(full ? "too_many" : "no_sender");
        return false;
      }
      transfers.remove(broadcast);
      transfers.put(broadcast, transfer);
    }
    announce.run();
    worker.execute(() -> copy(transfer, spool));
    worker.schedule(
        () -> expire(transfer, "it did not arrive in time"),
        transfer.announcement.timeoutMillis(), TimeUnit.MILLISECONDS);
    // Executors that disconnected before the transfer was registered.
    List<ExecutorServer.Peer> disconnected = new ArrayList<>(transfer.notified());
    disconnected.removeAll(connected.get());
    disconnected.forEach(peer -> removeWaiting(peer, broadcast));
    return true;
  }

  private boolean isOnDriverHost(ExecutorServer.Peer peer) {
    return peer.hello.host().equals(driverHost);
  }

  // ----------------------------------------------------------------------------------------- executors that join later

  private void addBatch(Announcement announcement) {
    batches.put(announcement.broadcast(), new JoinBatch(announcement));
    if (batches.size() > MAX_AT_ONCE) {
      JoinBatch oldest = batches.remove(batches.keySet().iterator().next());
      notifyEnd(oldest.peers(), oldest.announcement.broadcast());
    }
  }

  /** Announce to a new executor all broadcasts that no executor has, and those in progress. */
  private void announceAll(ExecutorServer.Peer peer) {
    synchronized (transfers) {
      if (isWithoutAgent(peer, System.nanoTime())) {
        return;
      }
      for (BroadcastTransfer transfer : transfers.values()) {
        if (transfer.isInProgress() && !batches.containsKey(transfer.announcement.broadcast())) {
          addBatch(transfer.announcement);
        }
      }
      for (JoinBatch batch : batches.values()) {
        batch.add(peer, System.nanoTime());
        peer.send(Message.of(held(batch.announcement, MAX_JOINING_HOSTS)));
        launchSoon(batch.announcement.broadcast());
      }
    }
  }

  private void launchSoon(long broadcast) {
    worker.schedule(() -> launch(broadcast), JoinBatch.millis(), TimeUnit.MILLISECONDS);
  }

  private void launch(long broadcast) {
    BroadcastTransfer transfer;
    synchronized (transfers) {
      JoinBatch batch = batches.get(broadcast);
      if (batch == null || !batch.isComplete(System.nanoTime())) {
        return;
      }
      BroadcastTransfer before = transfers.get(broadcast);
      if (before != null && before.isInProgress()) {
        // The transfer in progress uses the same file name in the spool.
        launchSoon(broadcast);
        return;
      }
      batches.remove(broadcast);
      List<ExecutorServer.Peer> peers = batch.peers();
      transfer = new BroadcastTransfer(
          held(batch.announcement, countHosts(peers)), peers, Set.of(), System.nanoTime());
    }
    Runnable announced = () -> LOG.debug("broadcast {} is sent to executors that joined later", broadcast);
    if (!begin(transfer, announced)) {
      notifyEnd(transfer.notified(), broadcast);
    }
  }

  @Override
  public void removed(long broadcast) {
    BroadcastTransfer transfer;
    synchronized (transfers) {
      transfer = transfers.remove(broadcast);
      JoinBatch batch = batches.remove(broadcast);
      if (batch != null) {
        notifyEnd(batch.peers(), broadcast);
      }
    }
    if (transfer != null) {
      giveUp(transfer, "the application has removed it");
      // Also after the transfer: executors may have received its files without having reported so.
      notifyEnd(transfer.notified(), broadcast);
    }
  }

  // --------------------------------------------------------------------------------------------- messages of executors

  @Override
  public void joined(ExecutorServer.Peer peer) {
    LOG.info("executor {} on {} receives broadcasts with Blast, from the agent {}", peer.hello.executor(),
        peer.hello.host(), peer.hello.agent());
    if (!isOnDriverHost(peer)) {
      announceAll(peer);
    }
    peer.send(Message.ofWelcome());
    publish.accept(new ExecutorJoined(peer.hello.executor(), peer.hello.host(), peer.hello.agent()));
  }

  @Override
  public void taken(ExecutorServer.Peer peer, Message.Taken taken) {
    BroadcastTaken event = new BroadcastTaken(
        taken.broadcast(), peer.hello.executor(), taken.pieces(), taken.late(), taken.bytes(), taken.heldMillis(),
        taken.reason());
    metrics.taken(event);
    publish.accept(event);
    if (!taken.reason().isEmpty()) {
      LOG.info("executor {} fetches broadcast {} with Spark: {}", peer.hello.executor(), taken.broadcast(),
          taken.reason());
    }
    removeWaiting(peer, taken.broadcast());
  }

  @Override
  public void left(ExecutorServer.Peer peer) {
    List<Long> all;
    synchronized (transfers) {
      all = List.copyOf(transfers.keySet());
      batches.values().forEach(batch -> batch.remove(peer));
    }
    all.forEach(broadcast -> removeWaiting(peer, broadcast));
  }

  /** Note that an executor waits no longer. After the last one on a host, its executors may remove the file. */
  private void removeWaiting(ExecutorServer.Peer peer, long broadcast) {
    List<ExecutorServer.Peer> peersOnHost = List.of();
    synchronized (transfers) {
      BroadcastTransfer transfer = transfers.get(broadcast);
      if (transfer != null && transfer.removeWaiting(peer)) {
        peersOnHost = transfer.on(peer.hello.host());
      }
      // Its host has received the files for other executors.
      JoinBatch batch = batches.get(broadcast);
      if (batch != null && batch.remove(peer) && batch.peers().isEmpty()) {
        batches.remove(broadcast);
      }
      removeEnded();
    }
    notifyEnd(peersOnHost, broadcast);
  }

  // ---------------------------------------------------------------------------------------------- events of the sender

  @Override
  public void progress(String send, long bytes) {
    BroadcastTransfer transfer;
    boolean isInTime;
    synchronized (transfers) {
      transfer = sending(send);
      if (transfer == null) {
        return;
      }
      transfer.progressed(bytes);
      isInTime = transfer.isInTime(System.nanoTime());
    }
    if (!isInTime) {
      expire(transfer, "it would have arrived too late");
    }
  }

  @Override
  public void ended(String send, SenderProcess.End end) {
    BroadcastTransfer transfer;
    boolean hasNextFile;
    synchronized (transfers) {
      transfer = sending(send);
      if (transfer == null) {
        return;
      }
      hasNextFile = transfer.endFile(end);
      if (!hasNextFile) {
        transfer.end();
      }
      if (!end.delivered().isEmpty()) {
        backoff.succeeded();
        noteHosts(transfer, end);
      }
      removeEnded();
    }
    if (end.delivered().isEmpty()) {
      failed(transfer);
      notifyEnd(transfer.notified(), transfer.announcement.broadcast());
    } else {
      end.failed().keySet().forEach(host -> notifyEnd(transfer.on(host), transfer.announcement.broadcast()));
    }
    if (hasNextFile) {
      commands.execute(() -> send(transfer));
    } else {
      removeUnsent(transfer);
      publishOutcome(transfer);
      sendNext();
    }
  }

  /** Return the broadcast with this transfer; null if the transfer has ended. */
  private BroadcastTransfer sending(String send) {
    BroadcastTransfer transfer = transfers.get(Long.parseLong(send.substring(0, send.indexOf('.'))));
    return transfer != null && transfer.isInProgress() && transfer.send().equals(send) ? transfer : null;
  }

  /** Start a pause for hosts whose agent failed. Meanwhile their executors fetch broadcasts from other executors. */
  private void noteHosts(BroadcastTransfer transfer, SenderProcess.End end) {
    end.delivered().forEach(hostBackoffs::remove);
    for (String host : end.failed().keySet()) {
      Backoff ofHost = hostBackoffs.computeIfAbsent(host, any -> new Backoff(FIRST_HOST_PAUSE_NANOS));
      if (ofHost.failed(transfer.announcedAt(), System.nanoTime())) {
        LOG.warn("the agent of {} failed ({}): its executors fetch broadcasts from other executors for {} s; check "
            + "the agent there", host,
            end.failed().get(host), ofHost.seconds());
      }
    }
  }

  @Override
  public void senderExited(String reason) {
    List<BroadcastTransfer> all;
    synchronized (transfers) {
      all = List.copyOf(transfers.values());
    }
    if (!worker.isShutdown()) {
      LOG.warn("blast sender has exited: {}; Spark fetches broadcasts without Blast", reason);
    }
    all.forEach(transfer -> giveUp(transfer, "the sender has exited"));
  }

  @Override
  public void close() {
    worker.shutdownNow();
    commands.shutdownNow();
    try {
      // Copies in progress must end before the spool is removed.
      worker.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  // ---------------------------------------------------------------------------------------------- transfers

  private String name(long broadcast) {
    byte[] nonce = new byte[NONCE_BYTES];
    random.nextBytes(nonce);
    return application + "/" + broadcast + "-" + HexFormat.of().formatHex(nonce);
  }

  private void copy(BroadcastTransfer transfer, Path spool) {
    Announcement announcement = transfer.announcement;
    SparkInternals.Cut cut = new SparkInternals.Cut(announcement.pieces(), announcement.pieceBytes());
    try {
      checkRoom(spool, announcement.maxBytes());
      long bytes = 0;
      for (PieceFile file : announcement.files()) {
        try (FileChannel to = FileChannel.open(
            spooled(spool, file), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
          pieces.copy(announcement.broadcast(), cut, file, to);
          bytes += to.size();
        }
      }
      synchronized (transfers) {
        transfer.ready(bytes);
      }
    } catch (IOException | RuntimeException error) {
      giveUp(transfer, error.toString());
      removeUnsent(transfer);
      return;
    }
    if (!isInProgress(transfer)) {
      removeUnsent(transfer);
    }
    sendNext();
  }

  /** Send the next broadcast if none is being sent. */
  private void sendNext() {
    synchronized (transfers) {
      BroadcastTransfer.next(transfers.values()).ifPresent(transfer -> {
        transfer.start(System.nanoTime());
        commands.execute(() -> send(transfer));
      });
    }
  }

  /** Leave half of the free space of the spool, which is in memory, to other processes. */
  private static void checkRoom(Path spool, long bytes) throws IOException {
    long room = Files.getFileStore(spool).getUsableSpace();
    if (room / 2 < bytes) {
      throw new IOException("not enough room in " + spool + " (" + room + " bytes are free)");
    }
  }

  private void send(BroadcastTransfer transfer) {
    Path spool = sender.spool();
    String send;
    PieceFile file;
    List<String> receivers;
    synchronized (transfers) {
      send = transfer.send();
      file = transfer.announcement.file(transfer.file());
      receivers = transfer.receivers();
    }
    try {
      if (spool == null) {
        throw new IOException("the sender has exited");
      }
      if (isInProgress(transfer)) {
        sender.send(send, spooled(spool, file), file.name(), settings.folder(), receivers);
      } else {
        remove(spooled(spool, file));
      }
    } catch (IOException error) {
      if (spool != null) {
        remove(spooled(spool, file));
      }
      giveUp(transfer, error.toString());
    }
  }

  private boolean isInProgress(BroadcastTransfer transfer) {
    synchronized (transfers) {
      return transfer.isInProgress();
    }
  }

  /** Return the path of a file in the spool, which is unique. */
  private static Path spooled(Path spool, PieceFile file) {
    return spool.resolve(file.name().substring(file.name().indexOf('/') + 1));
  }

  private void removeUnsent(BroadcastTransfer transfer) {
    Path spool = sender.spool();
    List<PieceFile> files;
    synchronized (transfers) {
      files = transfer.unsent();
    }
    if (spool != null) {
      files.forEach(file -> remove(spooled(spool, file)));
    }
  }

  private static void notifyEnd(Collection<ExecutorServer.Peer> peers, long broadcast) {
    peers.forEach(peer -> peer.send(Message.over(broadcast)));
  }

  /** Create a pool of daemon threads, which discards tasks after its shutdown. */
  private static ScheduledExecutorService threads(String name, int count) {
    return new ScheduledThreadPoolExecutor(
        count, work -> Daemon.of(name, work), new ThreadPoolExecutor.DiscardPolicy());
  }

  private static void remove(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException error) {
      LOG.debug("cannot remove {}; the sender does", file, error);
    }
  }

  private void expire(BroadcastTransfer transfer, String reason) {
    if (giveUp(transfer, reason)) {
      failed(transfer);
    }
  }

  /** Return the seconds of the pause after the last failure. */
  double pauseSeconds() {
    synchronized (transfers) {
      return backoff.seconds();
    }
  }

  /** Note a transfer that reached no host. */
  private void failed(BroadcastTransfer transfer) {
    synchronized (transfers) {
      if (backoff.failed(transfer.announcedAt(), System.nanoTime())) {
        LOG.warn("a broadcast reached no host: Spark fetches broadcasts without Blast for {} s; check the agents and "
            + "the sender's log", pauseSeconds());
      }
    }
  }

  /** Abort a transfer, so that Spark fetches the broadcast over a free link. Return false if it had ended. */
  private boolean giveUp(BroadcastTransfer transfer, String reason) {
    String send;
    synchronized (transfers) {
      if (!transfer.end()) {
        return false;
      }
      transfer.abandon(reason);
      send = transfer.send();
      removeEnded();
    }
    commands.execute(() -> sender.stop(send));
    removeUnsent(transfer);
    publishOutcome(transfer);
    notifyEnd(transfer.notified(), transfer.announcement.broadcast());
    sendNext();
    return true;
  }

  private void removeEnded() {
    transfers.values().removeIf(BroadcastTransfer::isComplete);
  }

  private void publishOutcome(BroadcastTransfer transfer) {
    BroadcastSent sent;
    synchronized (transfers) {
      sent = transfer.outcome(System.nanoTime());
    }
    metrics.sent(sent);
    publish.accept(sent);
    LOG.info("broadcast {}: {} bytes to {} hosts by {} in {} s{}", sent.broadcast(), sent.bytes(), sent.hosts(),
        sent.way(), String.format("%.3f", sent.seconds()), sent.reason().isEmpty() ? "" : " (" + sent.reason() + ")");
  }
}
