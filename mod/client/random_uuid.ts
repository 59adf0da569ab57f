/** Random UUIDs, also on pages served over plain http, where `crypto.randomUUID` is missing. */

/** A random UUID, version 4. React Native has no `crypto`: the UUIDs are then unique, but could be guessed. */
export function randomUuid(): string {
  return "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replace(/[xy]/g, (digit) => {
    const byte = globalThis.crypto?.getRandomValues(new Uint8Array(1))[0] ?? Math.random() * 256;
    return (digit === "x" ? byte & 15 : byte & 3 | 8).toString(16);
  });
}
