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

/** The driver's broadcasts, from the moment in which one is made until nobody waits for it any more. Thread-safe. */
final class Broadcasts implements SparkInternals.Watcher, Door.Listener, SenderProcess.Listener, Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Broadcasts.class);
  private static final int MAX_AT_ONCE = 16;
  private static final int MAX_GATHERED = 64;
  private static final int NONCE_BYTES = 16;
  private static final int THREADS = 4;
  private static final long CLOSE_SECONDS = 3;
  private static final double TYPICAL_LINK_RATE = 1e9;
  private static final long FIRST_PAUSE_NANOS = 5_000_000_000L;
  /** Longer than the first: a try costs each broadcast as much as it gains, and without one it still gains. */
  private static final long FIRST_HOST_PAUSE_NANOS = 60_000_000_000L;

  /** Writes the pieces of one file of a broadcast, one behind the other. */
  interface Pieces {
    /** IOException where they are not all there, or cannot be written. */
    void copy(long broadcast, SparkInternals.Cut cut, PieceFile file, FileChannel to) throws IOException;
  }

  private final PluginSettings settings;
  private final Pieces pieces;
  private final String ourHost;
  private final Consumer<SparkListenerEvent> publish;
  private final Figures figures;
  private final SecureRandom random = new SecureRandom();
  /** Broadcasts in the order in which they are sent, until no reader waits for them; guards what is below, too. */
  private final Map<Long, Course> courses = new LinkedHashMap<>();
  private final Map<Long, Gathering> gatherings = new LinkedHashMap<>();
  private final Backoff backoff = new Backoff(FIRST_PAUSE_NANOS);
  /** Of hosts whose agent failed when those of other hosts did not. */
  private final Map<String, Backoff> hostBackoffs = new HashMap<>();
  private final ScheduledExecutorService worker = threads("blast-broadcasts", THREADS);
  /** One, so that the sender hears first what to send and then to stop; none of Spark's threads ever waits for it. */
  private final ScheduledExecutorService asking = threads("blast-asking", 1);
  private volatile Supplier<Collection<Door.Guest>> present;
  private volatile Sender sender;
  private volatile String application;

  Broadcasts(
      PluginSettings settings, Pieces pieces, String ourHost, Consumer<SparkListenerEvent> publish,
      Figures figures) {
    this.settings = settings;
    this.pieces = pieces;
    this.ourHost = ourHost;
    this.publish = publish;
    this.figures = figures;
  }

  /** Begin to work, for the executors that are there, with this sender. */
  void begin(Supplier<Collection<Door.Guest>> executors, Sender files) {
    present = executors;
    sender = files;
  }

  /** What Spark calls the application. */
  void name(String id) {
    application = id;
  }

  // ---------------------------------------------------------------------------------------------- what Spark does

  @Override
  public void made(long broadcast, SparkInternals.Cut cut) {
    long bytes = (long) cut.pieces() * cut.pieceBytes();
    if (cut.pieces() < 2 || bytes - cut.pieceBytes() < settings.threshold()) {
      return;
    }
    if (application == null) {
      figures.refused("too_early");
      return;
    }
    synchronized (courses) {
      long now = System.nanoTime();
      if (!backoff.allows(now)) {
        figures.refused("failed_before");
        return;
      }
      List<Door.Guest> guests = new ArrayList<>(present.get());
      guests.removeIf(this::isHere);
      if (guests.isEmpty()) {
        gather(new Announcement(broadcast, name(broadcast), cut.pieces(), cut.pieceBytes(), 0, 1, false));
        return;
      }
      int hosts = countHosts(guests);
      Set<Door.Guest> relayed =
          guests.stream().filter(guest -> isWithoutAgent(guest, now)).collect(Collectors.toSet());
      if (relayed.size() == guests.size()) {
        figures.refused("no_agent");
        return;
      }
      if (settings.hold() && HoldTime.sendMillis(bytes, bytesLeft(), linkRate()) > holdMillis(bytes, hosts)) {
        // Smaller than what is under way: Spark has it on all hosts before its turn ends.
        figures.refused("link_busy");
        return;
      }
      int files = relayed.isEmpty() ? 1 : Announcement.relayedFiles(cut.pieces(), cut.pieceBytes(), linkRate());
      Announcement made =
          new Announcement(broadcast, name(broadcast), cut.pieces(), cut.pieceBytes(), 0, files, false);
      Course course = new Course(held(made, hosts), guests, relayed, now);
      begin(course, () -> guests.forEach(guest -> guest.tell(Message.of(course.announcementTo(guest)))));
    }
  }

  private static int countHosts(Collection<Door.Guest> guests) {
    return (int) guests.stream().map(guest -> guest.hello.host()).distinct().count();
  }

  /** Whether the executor has no agent, or one that failed and is left out for a time. */
  private boolean isWithoutAgent(Door.Guest guest, long now) {
    Backoff ofHost = hostBackoffs.get(guest.hello.host());
    return guest.hello.agent() == null || ofHost != null && !ofHost.allows(now);
  }

  private Announcement held(Announcement made, int hosts) {
    return made.held(settings.hold() ? holdMillis(made.maxBytes(), hosts) : 0);
  }

  private long holdMillis(long bytes, int hosts) {
    return HoldTime.millis(bytes, bytesLeft(), hosts, linkRate());
  }

  private double linkRate() {
    return settings.linkRate() > 0 ? settings.linkRate() : TYPICAL_LINK_RATE;
  }

  /** Return the bytes that are still to be sent of each broadcast under way. */
  private List<Long> bytesLeft() {
    return courses.values().stream().filter(Course::isUnderWay).map(Course::bytesLeft).toList();
  }

  /** Announce it and copy its files; false where no sender can take them. */
  private boolean begin(Course course, Runnable announce) {
    Path spool = sender.spool();
    long broadcast = course.announcement.broadcast();
    synchronized (courses) {
      boolean full = courses.values().stream().filter(Course::isUnderWay).count() >= MAX_AT_ONCE;
      if (spool == null || full) {
        figures.refused(full ? "too_many" : "no_sender");
        return false;
      }
      courses.remove(broadcast);
      courses.put(broadcast, course);
    }
    announce.run();
    worker.execute(() -> copy(course, spool));
    worker.schedule(
        () -> expire(course, "it was not there in time"),
        course.announcement.timeoutMillis(), TimeUnit.MILLISECONDS);
    // Executors that left before the course was there to be left.
    List<Door.Guest> gone = new ArrayList<>(course.told());
    gone.removeAll(present.get());
    gone.forEach(guest -> waitsNoLonger(guest, broadcast));
    return true;
  }

  private boolean isHere(Door.Guest guest) {
    return guest.hello.host().equals(ourHost);
  }

  // ---------------------------------------------------------------------------------------------- who comes later

  private void gather(Announcement made) {
    gatherings.put(made.broadcast(), new Gathering(made));
    if (gatherings.size() > MAX_AT_ONCE) {
      Gathering oldest = gatherings.remove(gatherings.keySet().iterator().next());
      over(oldest.guests(), oldest.announcement.broadcast());
    }
  }

  /** Tell somebody who has come of all that nobody has got, and of what others are getting. */
  private void tellOfAll(Door.Guest guest) {
    synchronized (courses) {
      if (isWithoutAgent(guest, System.nanoTime())) {
        return;
      }
      for (Course course : courses.values()) {
        if (course.isUnderWay() && !gatherings.containsKey(course.announcement.broadcast())) {
          gather(course.announcement);
        }
      }
      for (Gathering gathering : gatherings.values()) {
        gathering.add(guest, System.nanoTime());
        guest.tell(Message.of(held(gathering.announcement, MAX_GATHERED)));
        launchSoon(gathering.announcement.broadcast());
      }
    }
  }

  private void launchSoon(long broadcast) {
    worker.schedule(() -> launch(broadcast), Gathering.millis(), TimeUnit.MILLISECONDS);
  }

  private void launch(long broadcast) {
    Course course;
    synchronized (courses) {
      Gathering gathering = gatherings.get(broadcast);
      if (gathering == null || !gathering.isComplete(System.nanoTime())) {
        return;
      }
      Course before = courses.get(broadcast);
      if (before != null && before.isUnderWay()) {
        // The file in the spool has its name.
        launchSoon(broadcast);
        return;
      }
      gatherings.remove(broadcast);
      List<Door.Guest> guests = gathering.guests();
      course = new Course(
          held(gathering.announcement, countHosts(guests)), guests, Set.of(), System.nanoTime());
    }
    Runnable announced = () -> LOG.debug("broadcast {} is sent to those who came for it", broadcast);
    if (!begin(course, announced)) {
      over(course.told(), broadcast);
    }
  }

  @Override
  public void unwanted(long broadcast) {
    Course course;
    synchronized (courses) {
      course = courses.remove(broadcast);
      Gathering gathering = gatherings.remove(broadcast);
      if (gathering != null) {
        over(gathering.guests(), broadcast);
      }
    }
    if (course != null) {
      giveUp(course, "nobody wants it any more");
      // Also where it has been sent: some may have it in their folder, and have not said so yet.
      over(course.told(), broadcast);
    }
  }

  // ---------------------------------------------------------------------------------------------- what executors say

  @Override
  public void joined(Door.Guest guest) {
    LOG.info("executor {} on {} takes broadcasts by Blast, from the agent {}", guest.hello.executor(),
        guest.hello.host(), guest.hello.agent());
    if (!isHere(guest)) {
      tellOfAll(guest);
    }
    guest.tell(Message.ofWelcome());
    publish.accept(new ExecutorJoined(guest.hello.executor(), guest.hello.host(), guest.hello.agent()));
  }

  @Override
  public void taken(Door.Guest guest, Message.Taken taken) {
    BroadcastTaken event = new BroadcastTaken(
        taken.broadcast(), guest.hello.executor(), taken.pieces(), taken.late(), taken.bytes(), taken.heldMillis(),
        taken.reason());
    figures.taken(event);
    publish.accept(event);
    if (!taken.reason().isEmpty()) {
      LOG.info("executor {} leaves broadcast {} to Spark: {}", guest.hello.executor(), taken.broadcast(),
          taken.reason());
    }
    waitsNoLonger(guest, taken.broadcast());
  }

  @Override
  public void left(Door.Guest guest) {
    List<Long> all;
    synchronized (courses) {
      all = List.copyOf(courses.keySet());
      gatherings.values().forEach(gathering -> gathering.remove(guest));
    }
    all.forEach(broadcast -> waitsNoLonger(guest, broadcast));
  }

  /** When nobody on a host waits any more, the file there is only a name for what is mapped. */
  private void waitsNoLonger(Door.Guest guest, long broadcast) {
    List<Door.Guest> tell = List.of();
    synchronized (courses) {
      Course course = courses.get(broadcast);
      if (course != null && course.isLast(guest)) {
        tell = course.on(guest.hello.host());
      }
      // It came to its host with the others.
      Gathering gathering = gatherings.get(broadcast);
      if (gathering != null && gathering.remove(guest) && gathering.guests().isEmpty()) {
        gatherings.remove(broadcast);
      }
      forgetWhatIsOver();
    }
    over(tell, broadcast);
  }

  // ---------------------------------------------------------------------------------------------- what the sender says

  @Override
  public void progress(String send, long bytes) {
    Course course;
    boolean isInTime;
    synchronized (courses) {
      course = sending(send);
      if (course == null) {
        return;
      }
      course.progressed(bytes);
      isInTime = course.isInTime(System.nanoTime());
    }
    if (!isInTime) {
      expire(course, "it would not have been there in time");
    }
  }

  @Override
  public void ended(String send, SenderProcess.End end) {
    Course course;
    boolean hasNextFile;
    synchronized (courses) {
      course = sending(send);
      if (course == null) {
        return;
      }
      hasNextFile = course.endFile(end);
      if (!hasNextFile) {
        course.end();
      }
      if (!end.delivered().isEmpty()) {
        backoff.succeeded();
        noteHosts(course, end);
      }
      forgetWhatIsOver();
    }
    if (end.delivered().isEmpty()) {
      failed(course);
      over(course.told(), course.announcement.broadcast());
    } else {
      end.failed().keySet().forEach(host -> over(course.on(host), course.announcement.broadcast()));
    }
    if (hasNextFile) {
      asking.execute(() -> send(course));
    } else {
      removeUnsent(course);
      publishOutcome(course);
      sendNext();
    }
  }

  /** Return the broadcast that is being sent under this name; null where that has ended. */
  private Course sending(String send) {
    Course course = courses.get(Long.parseLong(send.substring(0, send.indexOf('.'))));
    return course != null && course.isUnderWay() && course.send().equals(send) ? course : null;
  }

  /** Remember hosts whose agent failed: for a time, their executors get broadcasts from other executors. */
  private void noteHosts(Course course, SenderProcess.End end) {
    end.delivered().forEach(hostBackoffs::remove);
    for (String host : end.failed().keySet()) {
      Backoff ofHost = hostBackoffs.computeIfAbsent(host, any -> new Backoff(FIRST_HOST_PAUSE_NANOS));
      if (ofHost.failed(course.announcedAt(), System.nanoTime())) {
        LOG.warn("the agent of {} failed ({}): for {} s its executors get broadcasts from other executors", host,
            end.failed().get(host), ofHost.seconds());
      }
    }
  }

  @Override
  public void gone(String reason) {
    List<Course> all;
    synchronized (courses) {
      all = List.copyOf(courses.values());
    }
    if (!worker.isShutdown()) {
      LOG.warn("blast sender is gone, and Spark fetches broadcasts as always: {}", reason);
    }
    all.forEach(course -> giveUp(course, "the sender is gone"));
  }

  @Override
  public void close() {
    worker.shutdownNow();
    asking.shutdownNow();
    try {
      // What is being copied goes, too, before anybody removes the folder.
      worker.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  // ---------------------------------------------------------------------------------------------- our own work

  private String name(long broadcast) {
    byte[] nonce = new byte[NONCE_BYTES];
    random.nextBytes(nonce);
    return application + "/" + broadcast + "-" + HexFormat.of().formatHex(nonce);
  }

  private void copy(Course course, Path spool) {
    Announcement coming = course.announcement;
    SparkInternals.Cut cut = new SparkInternals.Cut(coming.pieces(), coming.pieceBytes());
    try {
      refuseWithoutRoom(spool, coming.maxBytes());
      long bytes = 0;
      for (PieceFile file : coming.files()) {
        try (FileChannel to = FileChannel.open(
            spooled(spool, file), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
          pieces.copy(coming.broadcast(), cut, file, to);
          bytes += to.size();
        }
      }
      synchronized (courses) {
        course.ready(bytes);
      }
    } catch (IOException | RuntimeException error) {
      giveUp(course, error.toString());
      removeUnsent(course);
      return;
    }
    if (!isUnderWay(course)) {
      removeUnsent(course);
    }
    sendNext();
  }

  /** Let the sender have the next broadcast, if it has none. */
  private void sendNext() {
    synchronized (courses) {
      Course.next(courses.values()).ifPresent(course -> {
        course.start(System.nanoTime());
        asking.execute(() -> send(course));
      });
    }
  }

  /** The spool is in memory, and others of this host need some, too. */
  private static void refuseWithoutRoom(Path spool, long bytes) throws IOException {
    long room = Files.getFileStore(spool).getUsableSpace();
    if (room / 2 < bytes) {
      throw new IOException("there is no room for it in " + spool + " (" + room + " bytes are free)");
    }
  }

  private void send(Course course) {
    Path spool = sender.spool();
    String send;
    PieceFile file;
    List<String> receivers;
    synchronized (courses) {
      send = course.send();
      file = course.announcement.file(course.file());
      receivers = course.receivers();
    }
    try {
      if (spool == null) {
        throw new IOException("the sender has gone");
      }
      if (isUnderWay(course)) {
        sender.send(send, spooled(spool, file), file.name(), settings.folder(), receivers);
      } else {
        remove(spooled(spool, file));
      }
    } catch (IOException error) {
      if (spool != null) {
        remove(spooled(spool, file));
      }
      giveUp(course, error.toString());
    }
  }

  private boolean isUnderWay(Course course) {
    synchronized (courses) {
      return course.isUnderWay();
    }
  }

  /** Return the place of a file of a broadcast until it is sent; its name there is unique. */
  private static Path spooled(Path spool, PieceFile file) {
    return spool.resolve(file.name().substring(file.name().indexOf('/') + 1));
  }

  private void removeUnsent(Course course) {
    Path spool = sender.spool();
    List<PieceFile> files;
    synchronized (courses) {
      files = course.unsent();
    }
    if (spool != null) {
      files.forEach(file -> remove(spooled(spool, file)));
    }
  }

  private static void over(Collection<Door.Guest> guests, long broadcast) {
    guests.forEach(guest -> guest.tell(Message.over(broadcast)));
  }

  /** Daemons; what comes after the end is not done. */
  private static ScheduledExecutorService threads(String name, int most) {
    return new ScheduledThreadPoolExecutor(
        most, work -> Daemon.of(name, work), new ThreadPoolExecutor.DiscardPolicy());
  }

  private static void remove(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException error) {
      LOG.debug("the sender removes it", error);
    }
  }

  private void expire(Course course, String reason) {
    if (giveUp(course, reason)) {
      failed(course);
    }
  }

  /** Return the seconds of the pause after the last failure. */
  double pauseSeconds() {
    synchronized (courses) {
      return backoff.seconds();
    }
  }

  /** Note that readers have waited in vain. */
  private void failed(Course course) {
    synchronized (courses) {
      if (backoff.failed(course.announcedAt(), System.nanoTime())) {
        LOG.warn("no host has it by Blast: for {} s Spark fetches broadcasts as always", pauseSeconds());
      }
    }
  }

  /** End what is under way, so that Spark fetches it and has the link to itself; false where it had ended before. */
  private boolean giveUp(Course course, String reason) {
    String send;
    synchronized (courses) {
      if (!course.end()) {
        return false;
      }
      course.abandon(reason);
      send = course.send();
      forgetWhatIsOver();
    }
    asking.execute(() -> sender.stop(send));
    removeUnsent(course);
    publishOutcome(course);
    over(course.told(), course.announcement.broadcast());
    sendNext();
    return true;
  }

  private void forgetWhatIsOver() {
    courses.values().removeIf(Course::isOver);
  }

  private void publishOutcome(Course course) {
    BroadcastSent sent;
    synchronized (courses) {
      sent = course.outcome(System.nanoTime());
    }
    figures.sent(sent);
    publish.accept(sent);
    LOG.info("broadcast {}: {} bytes to {} hosts by {} in {} s{}", sent.broadcast(), sent.bytes(), sent.hosts(),
        sent.way(), String.format("%.3f", sent.seconds()), sent.reason().isEmpty() ? "" : " (" + sent.reason() + ")");
  }
}
