/** What a kind of function does not have on its `ctx`: reaching for it says where it is, instead of being `undefined`. */

/** Makes the named properties of a class's objects throw when they are read. Own properties of heirs come first. */
export function explainMissing(prototype: object, missing: Readonly<Record<string, string>>): void {
  for (const [name, message] of Object.entries(missing)) {
    Object.defineProperty(prototype, name, {
      get() {
        throw new TypeError(message);
      },
      enumerable: false,
      configurable: true,
    });
  }
}
