package org.blast.hadoop;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import org.apache.hadoop.fs.ByteBufferReadable;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;

/** A stream that reads an open copy. Positioned reads are thread-safe. */
final class CopyStream extends FSInputStream implements ByteBufferReadable {
  private final FileChannel copy;
  private final FileSystem.Statistics statistics;

  /** Read a copy, which closes with this stream. */
  CopyStream(FileChannel copy, FileSystem.Statistics statistics) {
    this.copy = copy;
    this.statistics = statistics;
  }

  @Override
  public synchronized void seek(long position) throws IOException {
    if (position < 0 || position > copy.size()) {
      throw new EOFException("position " + position + " is outside a file of " + copy.size() + " bytes");
    }
    copy.position(position);
  }

  @Override
  public synchronized long getPos() throws IOException {
    return copy.position();
  }

  @Override
  public boolean seekToNewSource(long position) {
    return false;
  }

  @Override
  public synchronized int available() throws IOException {
    return (int) Math.min(Integer.MAX_VALUE, copy.size() - copy.position());
  }

  @Override
  public synchronized int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public synchronized int read(byte[] buffer, int offset, int length) throws IOException {
    return read(ByteBuffer.wrap(buffer, offset, length));
  }

  @Override
  public synchronized int read(ByteBuffer buffer) throws IOException {
    return counted(copy.read(buffer));
  }

  @Override
  public int read(long position, byte[] buffer, int offset, int length) throws IOException {
    if (position < 0) {
      throw new EOFException("negative position " + position);
    }
    validatePositionedReadArgs(position, buffer, offset, length);
    return counted(copy.read(ByteBuffer.wrap(buffer, offset, length), position));
  }

  @Override
  public synchronized long skip(long bytes) throws IOException {
    long skipped = Math.max(0, Math.min(bytes, copy.size() - copy.position()));
    copy.position(copy.position() + skipped);
    return skipped;
  }

  @Override
  public void close() throws IOException {
    copy.close();
  }

  private int counted(int bytes) {
    if (bytes > 0) {
      statistics.incrementBytesRead(bytes);
    }
    return bytes;
  }
}
