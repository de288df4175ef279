package org.blast.interop;

import java.util.List;
import org.apache.thrift.TException;
import org.apache.thrift.TSerializer;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TSimpleJSONProtocol;
import org.apache.thrift.TBase;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.layered.TFramedTransport;
import org.blast.Blast;
import org.blast.Event;
import org.blast.EventKind;
import org.blast.MulticastRequest;
import org.blast.Rejected;
import org.blast.RequestStatus;
import org.blast.TransferReport;
import org.blast.UnknownRequest;

/**
 * An interoperability test that makes the calls of an application with Thrift's generated client. It prints each answer
 * as one line of JSON: {"call": NAME, "answer": STRUCT} or {"call": NAME, "exception": TYPE, "content": STRUCT}.
 *
 * <p>Arguments: HOST PORT KEY SENDER RECEIVER,RECEIVER… BYTES [binary|compact]. Exit status: 0 if the controller
 * answers as the interface specifies, 1 if not, 2 for wrong arguments.
 */
public final class BlastInterop {
  private static final int WAIT_MS = 20_000;
  private static final int SOCKET_TIMEOUT_MS = WAIT_MS + 10_000;

  private final Blast.Client client;

  private BlastInterop(Blast.Client client) {
    this.client = client;
  }

  public static void main(String[] arguments) throws TException {
    if (arguments.length < 6 || arguments.length > 7) {
      System.err.println("arguments: HOST PORT KEY SENDER RECEIVER,RECEIVER BYTES [binary|compact]");
      System.exit(2);
    }
    MulticastRequest request =
        new MulticastRequest(
            arguments[2], arguments[3], List.of(arguments[4].split(",")), Long.parseLong(arguments[5]));
    boolean compact = arguments.length == 7 && arguments[6].equals("compact");
    try (TTransport transport =
        new TFramedTransport(
            new TSocket(arguments[0], Integer.parseInt(arguments[1]), SOCKET_TIMEOUT_MS))) {
      transport.open();
      TProtocol protocol = compact ? new TCompactProtocol(transport) : new TBinaryProtocol(transport);
      boolean passed = new BlastInterop(new Blast.Client(protocol)).run(request);
      System.exit(passed ? 0 : 1);
    }
  }

  private boolean run(MulticastRequest request) throws TException {
    print("version", client.version());
    RequestStatus submitted = client.submit(request);
    print("submit", submitted);
    print("submit again", client.submit(request));
    Event granted = client.awaitEvent(request.key, 0, WAIT_MS);
    print("awaitEvent", granted);
    TransferReport report = new TransferReport().setBytesSent(request.bytes);
    print("finish", client.finish(request.key, granted.part, report));
    print("status", client.status(request.key));
    return granted.kind == EventKind.GRANTED
        && granted.isSetGrant()
        && rejects(request)
        && reportsUnknownKey(request.key);
  }

  /** Returns true if the controller rejects a request with an unknown host, with a message. */
  private boolean rejects(MulticastRequest request) throws TException {
    MulticastRequest unknownHost =
        new MulticastRequest(request.key + "-x", request.sender, List.of("no-such-host"), request.bytes);
    try {
      print("submit", client.submit(unknownHost));
      return false;
    } catch (Rejected rejected) {
      printException("submit", rejected);
      return !rejected.message.isEmpty();
    }
  }

  private boolean reportsUnknownKey(String key) throws TException {
    try {
      print("status", client.status(key + "-unknown"));
      return false;
    } catch (UnknownRequest unknown) {
      printException("status", unknown);
      return unknown.key.equals(key + "-unknown");
    }
  }

  private static void print(String call, TBase<?, ?> answer) throws TException {
    System.out.printf("{\"call\": \"%s\", \"answer\": %s}%n", call, json(answer));
  }

  private static void printException(String call, TBase<?, ?> exception) throws TException {
    System.out.printf(
        "{\"call\": \"%s\", \"exception\": \"%s\", \"content\": %s}%n",
        call, exception.getClass().getSimpleName(), json(exception));
  }

  private static String json(TBase<?, ?> struct) throws TException {
    return new TSerializer(new TSimpleJSONProtocol.Factory()).toString(struct);
  }
}
