package org.blast.client;

/** What a call cannot do without. */
final class Arguments {
  private Arguments() {}

  /** The value. Throws WrongArgument where there is none. */
  static <T> T needed(String name, T value) {
    if (value == null) {
      throw new WrongArgument("the call needs the argument " + name + ", and got null");
    }
    return value;
  }
}
