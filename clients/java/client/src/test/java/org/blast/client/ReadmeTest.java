package org.blast.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import example.Multicast;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.blast.PartState;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that the examples of the README compile and work. */
@Timeout(60)
class ReadmeTest {
  private static final Pattern PROGRAM = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

  @Test
  void readmeShowsTheTestedExamples() throws IOException {
    String tested = withoutIndentation(Files.readString(Path.of("src/test/java/example/Multicast.java")));
    List<MatchResult> shown = PROGRAM.matcher(Files.readString(Path.of("../README.md"))).results().toList();
    assertEquals(4, shown.size());
    for (MatchResult program : shown) {
      assertTrue(tested.contains(withoutIndentation(program.group(1))), program.group(1));
    }
  }

  private static String withoutIndentation(String text) {
    return text.replaceAll("(?m)^ +", "");
  }

  @Test
  void examplesRequestAndFinishGrants() throws Exception {
    RealController controller = RealController.shared();
    assertTrue(Multicast.send(controller.get("open")).startsWith("send UDP to 239."));
    try (BlastClient client = controller.client()) {
      assertEquals(PartState.DONE, client.status("iteration-1").state);
      assertEquals(PartState.DONE, Multicast.sendLater(client, RealController.request("later")).get().state);
    }
  }
}
