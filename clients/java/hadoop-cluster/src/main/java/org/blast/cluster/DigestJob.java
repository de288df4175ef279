package org.blast.cluster;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.NLineInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** A job with a task for each input line, which writes the SHA-256 of the file `weights` of the distributed cache. */
public final class DigestJob extends Configured implements Tool {

  /** Runs the job. The arguments after -D … are the input and the output directory, which must not exist. */
  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new DigestJob(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    Job job = Job.getInstance(getConf(), "digest");
    job.setJarByClass(DigestJob.class);
    job.setMapperClass(Digests.class);
    job.setNumReduceTasks(0);
    job.setInputFormatClass(NLineInputFormat.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(NullWritable.class);
    FileInputFormat.addInputPath(job, new org.apache.hadoop.fs.Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new org.apache.hadoop.fs.Path(arguments[1]));
    return job.waitForCompletion(false) ? 0 : 1;
  }

  /** The task, which computes the digest. */
  public static final class Digests extends Mapper<LongWritable, Text, Text, NullWritable> {
    @Override
    protected void map(LongWritable offset, Text line, Context context) throws IOException, InterruptedException {
      context.write(new Text(digest(Path.of("weights"))), NullWritable.get());
    }

    private static String digest(Path file) throws IOException {
      try (InputStream in = Files.newInputStream(file);
          DigestInputStream read = new DigestInputStream(in, MessageDigest.getInstance("SHA-256"))) {
        read.transferTo(OutputStream.nullOutputStream());
        StringBuilder text = new StringBuilder();
        for (byte one : read.getMessageDigest().digest()) {
          text.append(String.format("%02x", one));
        }
        return text.toString();
      } catch (NoSuchAlgorithmException error) {
        throw new IOException(error);
      }
    }
  }
}
