/** Random UUIDs, also on pages served over plain http, where `crypto.randomUUID` is missing. */

/**
 * A random UUID, version 4, with 120 random bits: ids of sessions and attempts are secrets. Throws `Error` without `crypto`, which
 * React Native lacks.
 */
export function randomUuid(): string {
  const { crypto } = globalThis;
  if (!crypto) throw new Error("No crypto: install react-native-get-random-values or expo-crypto");
  const digit = () => (crypto.getRandomValues(new Uint8Array(1))[0]! & 15).toString(16);
  return "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, digit);
}
