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
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The driver's broadcasts, from the moment in which one is made until nobody waits for it any more. Thread-safe. */
final class Broadcasts implements SparkInternals.Watcher, Door.Listener, SenderProcess.Listener, Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Broadcasts.class);
  private static final int MOST_AT_ONCE = 16;
  private static final int MOST_GATHERED = 64;
  private static final int NONCE_BYTES = 16;
  private static final int THREADS = 4;
  private static final long CLOSE_SECONDS = 3;
  private static final double TYPICAL_LINK_RATE = 1e9;

  /** Writes the pieces of a broadcast, one behind the other. */
  interface Pieces {
    /** IOException where they are not all there, or cannot be written. */
    void copy(long broadcast, SparkInternals.Cut cut, FileChannel to) throws IOException;
  }

  private final PluginSettings settings;
  private final Pieces pieces;
  private final String ourHost;
  private final Consumer<SparkListenerEvent> publish;
  private final Figures figures;
  private final SecureRandom random = new SecureRandom();
  /** Of broadcasts that are being sent, or were and are waited for; guards what is below, too. */
  private final Map<Long, Course> courses = new HashMap<>();
  private final Map<Long, Gathering> gatherings = new LinkedHashMap<>();
  private final Backoff backoff = new Backoff();
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
      if (!backoff.allows(System.nanoTime())) {
        figures.refused("failed_before");
        return;
      }
    }
    Announcement made = new Announcement(broadcast, name(broadcast), cut.pieces(), cut.pieceBytes(), 0);
    List<Door.Guest> guests;
    synchronized (courses) {
      guests = new ArrayList<>(present.get());
      guests.removeIf(this::isHere);
      if (guests.isEmpty()) {
        gather(made);
        return;
      }
    }
    Course course = course(made, guests);
    begin(course, () -> guests.forEach(guest -> guest.tell(Message.of(course.announcement))));
  }

  /** With the time that readers wait, as all of them are known. */
  private Course course(Announcement made, List<Door.Guest> guests) {
    int hosts = (int) guests.stream().map(guest -> guest.hello.host()).distinct().count();
    return new Course(held(made, hosts), guests, System.nanoTime());
  }

  private Announcement held(Announcement made, int hosts) {
    double rate = settings.linkRate() > 0 ? settings.linkRate() : TYPICAL_LINK_RATE;
    return made.held(settings.hold() ? HoldTime.millis(made.mostBytes(), hosts, rate) : 0);
  }

  /** Announce it, and then send it; false where neither can be. */
  private boolean begin(Course course, Runnable announce) {
    Path spool = sender.spool();
    long broadcast = course.announcement.broadcast();
    synchronized (courses) {
      boolean full = courses.values().stream().filter(Course::isSending).count() >= MOST_AT_ONCE;
      if (spool == null || full) {
        figures.refused(full ? "too_many" : "no_sender");
        return false;
      }
      courses.put(broadcast, course);
    }
    announce.run();
    worker.execute(() -> copy(course, spool));
    worker.schedule(
        () -> expire(course, "it was not there in time"),
        course.announcement.patienceMillis(), TimeUnit.MILLISECONDS);
    // Who left before the course was there to be left.
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
    if (gatherings.size() > MOST_AT_ONCE) {
      Gathering oldest = gatherings.remove(gatherings.keySet().iterator().next());
      over(oldest.guests(), oldest.announcement.broadcast());
    }
  }

  /** Tell somebody who has come of all that nobody has got, and of what others are getting. */
  private void tellOfAll(Door.Guest guest) {
    synchronized (courses) {
      for (Course course : courses.values()) {
        if (course.isSending() && !gatherings.containsKey(course.announcement.broadcast())) {
          gather(course.announcement);
        }
      }
      for (Gathering gathering : gatherings.values()) {
        gathering.add(guest, System.nanoTime());
        guest.tell(Message.of(held(gathering.announcement, MOST_GATHERED)));
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
      if (before != null && before.isSending()) {
        // The file in the spool has its name.
        launchSoon(broadcast);
        return;
      }
      gatherings.remove(broadcast);
      course = course(gathering.announcement, gathering.guests());
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
    LOG.info("executor {} on {} takes broadcasts by Blast, from the agent at {}", guest.hello.executor(),
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
    long broadcast = Long.parseLong(send);
    Course course;
    synchronized (courses) {
      course = courses.get(broadcast);
    }
    if (course != null && !course.isInTime(bytes, System.nanoTime())) {
      expire(course, "it would not have been there in time");
    }
  }

  @Override
  public void ended(String send, SenderProcess.End end) {
    Course course;
    synchronized (courses) {
      course = courses.get(Long.parseLong(send));
      if (course == null || !course.end()) {
        return;
      }
      if (!end.delivered().isEmpty()) {
        backoff.succeeded();
      }
      forgetWhatIsOver();
    }
    if (end.delivered().isEmpty()) {
      failed();
    }
    tell(course, end);
    for (String host : end.failed().keySet()) {
      over(host.isEmpty() ? course.told() : course.on(host), course.announcement.broadcast());
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
    Path file = spool.resolve(Long.toString(coming.broadcast()));
    try {
      refuseWithoutRoom(spool, coming.mostBytes());
      try (FileChannel to = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        pieces.copy(coming.broadcast(), cut, to);
      }
      asking.execute(() -> send(course, file));
    } catch (IOException | RuntimeException error) {
      remove(file);
      giveUp(course, error.toString());
    }
  }

  /** The spool is in memory, and others of this host need some, too. */
  private static void refuseWithoutRoom(Path spool, long bytes) throws IOException {
    long room = Files.getFileStore(spool).getUsableSpace();
    if (room / 2 < bytes) {
      throw new IOException("there is no room for it in " + spool + " (" + room + " bytes are free)");
    }
  }

  private void send(Course course, Path file) {
    Announcement coming = course.announcement;
    Map<String, String> agents = new LinkedHashMap<>();
    course.told().forEach(guest -> agents.put(guest.hello.host(), guest.hello.host() + "=" + guest.hello.agent()));
    try {
      if (isSending(course)) {
        sender.send(
            Long.toString(coming.broadcast()), file, coming.name(), settings.folder(), List.copyOf(agents.values()));
      } else {
        remove(file);
      }
    } catch (IOException error) {
      remove(file);
      giveUp(course, error.toString());
    }
  }

  private boolean isSending(Course course) {
    synchronized (courses) {
      return course.isSending();
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
      failed();
    }
  }

  /** Readers have waited in vain. */
  private void failed() {
    double seconds;
    synchronized (courses) {
      backoff.failed(System.nanoTime());
      seconds = backoff.seconds();
    }
    LOG.warn("no host has it by Blast: for {} s Spark fetches broadcasts as always", seconds);
  }

  /** Readers go their own way, if they still wait, and have the link to themselves; false where it was over before. */
  private boolean giveUp(Course course, String reason) {
    long broadcast = course.announcement.broadcast();
    boolean sending;
    synchronized (courses) {
      sending = course.end();
      forgetWhatIsOver();
    }
    if (sending) {
      asking.execute(() -> sender.stop(Long.toString(broadcast)));
      tell(course, new SenderProcess.End(List.of(), Map.of("", reason), List.of(), 0, null));
      over(course.told(), broadcast);
    }
    return sending;
  }

  private void forgetWhatIsOver() {
    courses.values().removeIf(Course::isOver);
  }

  private void tell(Course course, SenderProcess.End end) {
    String way = end.carriers().isEmpty() || end.delivered().isEmpty() ? "spark" : String.join("+", end.carriers());
    List<String> reasons = new ArrayList<>();
    if (end.noLight() != null) {
      reasons.add("no light: " + end.noLight());
    }
    end.failed().forEach((host, why) -> reasons.add(host.isEmpty() ? why : host + ": " + why));
    BroadcastSent sent = new BroadcastSent(
        course.announcement.broadcast(), course.announcement.mostBytes(), way, end.delivered().size(),
        course.secondsSince(System.nanoTime()), String.join("; ", reasons));
    figures.sent(sent);
    publish.accept(sent);
    LOG.info("broadcast {}: at most {} bytes to {} hosts by {} in {} s{}", sent.broadcast(), sent.bytes(), sent.hosts(),
        sent.way(), String.format("%.3f", sent.seconds()), sent.reason().isEmpty() ? "" : " (" + sent.reason() + ")");
  }
}
