/** Makes properties that a `ctx` does not have throw a helpful error instead of being `undefined`. */

/** Makes the named properties of a class throw when read. Properties of instances take precedence. */
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
