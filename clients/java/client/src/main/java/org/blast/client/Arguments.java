package org.blast.client;

/** Checks of required arguments. */
final class Arguments {
  private Arguments() {}

  /** Returns the value. Throws WrongArgument if it is null. */
  static <T> T require(String name, T value) {
    if (value == null) {
      throw new WrongArgument("the argument " + name + " is null: pass a value");
    }
    return value;
  }
}
