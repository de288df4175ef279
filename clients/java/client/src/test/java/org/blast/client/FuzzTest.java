package org.blast.client;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.blast.Blast;
import org.blast.MulticastRequest;
import org.blast.PartState;
import org.blast.PartStatus;
import org.blast.RequestPage;
import org.blast.RequestStatus;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Fuzz tests of decoding: any message yields an answer or an exception soon, with little memory. */
@Timeout(60)
class FuzzTest {
  private static final int TIMES = 5_000;
  private final Random dice = new Random(20_240_607);

  @Test
  void decoderSurvivesRandomMessages() {
    for (int time = 0; time < TIMES; time++) {
      byte[] message = new byte[1 + dice.nextInt(200)];
      dice.nextBytes(message);
      decode(message);
    }
  }

  @Test
  void decoderSurvivesChangedBytes() throws TException {
    byte[] right = page();
    for (int time = 0; time < TIMES; time++) {
      byte[] wrong = right.clone();
      for (int change = dice.nextInt(4); change >= 0; change--) {
        wrong[dice.nextInt(wrong.length)] = (byte) (dice.nextBoolean() ? dice.nextInt(256) : 0x7F);
      }
      decode(wrong);
    }
  }

  @Test
  void decoderSurvivesTruncatedMessages() throws TException {
    byte[] right = page();
    for (int length = 0; length < right.length; length++) {
      decode(java.util.Arrays.copyOf(right, length));
    }
  }

  @Test
  void decoderSurvivesListsWithFalseLength() throws TException {
    // A page whose list claims two billion entries of zero bytes each.
    ByteBuffer message = ByteBuffer.allocate(64);
    message.putInt(0x80010002).putInt(1).put((byte) 'x').putInt(1);
    message.put((byte) 12).putShort((short) 0).put((byte) 15).putShort((short) 1).put((byte) 12).putInt(0x7FFFFFFF);
    decode(message.array());
  }

  @Test
  void decoderSurvivesDeepNesting() {
    ByteBuffer message = ByteBuffer.allocate(Frames.MAX_BYTES);
    message.putInt(0x80010002).putInt(1).put((byte) 'x').putInt(1);
    while (message.remaining() > 3) {
      message.put((byte) 12).putShort((short) 99);
    }
    decode(message.array());
  }

  @Test
  void frameReaderSurvivesRandomBytes() {
    for (int time = 0; time < TIMES; time++) {
      byte[] stream = new byte[dice.nextInt(64)];
      dice.nextBytes(stream);
      if (stream.length > 3 && dice.nextBoolean()) {
        stream[0] = stream[1] = stream[2] = 0;
      }
      try {
        byte[] message = Frames.read(new DataInputStream(new ByteArrayInputStream(stream)));
        assertTrue(message.length > 0 && message.length <= stream.length);
      } catch (IOException wrong) {
        assertNotNull(wrong);
      }
    }
  }

  /** Decode a message as a connection does, for several calls. */
  private static void decode(byte[] message) {
    List<Call<?>> calls = new ArrayList<>();
    try {
      int sequence = Codec.header(message).seqid;
      Call.Encoder nothing = (codec, left) -> {};
      calls.add(new Call<>("listRequests", sequence, 0, nothing, Codec::recv_listRequests));
      calls.add(new Call<>("fabric", sequence, 0, nothing, Codec::recv_fabric));
      calls.add(new Call<>("awaitEvent", sequence, 0, nothing, Codec::recv_awaitEvent));
      calls.add(new Call<>("elements", sequence, 0, nothing, Codec::recv_elements));
    } catch (TException | RuntimeException noMessage) {
      return;
    }
    for (Call<?> call : calls) {
      try {
        call.answer(message);
        assertTrue(call.future.isDone());
      } catch (org.blast.NotLeader answer) {
        assertTrue(!call.future.isDone());
      }
    }
  }

  private static byte[] page() throws TException {
    MulticastRequest request = RealController.request("k");
    PartStatus part = new PartStatus(0, PartState.PENDING, request.receivers).setReason("it waits");
    RequestStatus status =
        new RequestStatus("k", "default", PartState.PENDING, "r1h1", request.receivers, 1, 2, List.of(part), 3);
    RequestPage page = new RequestPage(Collections.nCopies(5, status)).setNextCursor("more");
    return FakeServer.message(
        new TMessage("listRequests", TMessageType.REPLY, 7), new Blast.listRequests_result().setSuccess(page));
  }
}
