/** Names for list items that stay when a message that was on its way becomes the real one. */
import type { Message } from "./api.ts";

export class MessageKeys {
  #messages: readonly Message[] = [];
  /** Keys by message id. */
  #keys = new Map<string, string>();

  /** The key of each message. Messages that are new take the keys of the pending ones they are the real form of. */
  of(messages: readonly Message[]): ReadonlyMap<string, string> {
    if (messages === this.#messages) return this.#keys;
    const present = new Set(messages.map(({ _id }) => _id));
    const gone = this.#messages.filter(({ _id, pending }) => pending && !present.has(_id));
    const keys = new Map<string, string>();
    for (const message of messages) {
      let key = this.#keys.get(message._id);
      if (key === undefined) {
        const at = gone.findIndex(({ name, body }) => name === message.name && body === message.body);
        const [pending] = at < 0 ? [] : gone.splice(at, 1);
        key = (pending && this.#keys.get(pending._id)) ?? message._id;
      }
      keys.set(message._id, key);
    }
    this.#messages = messages;
    this.#keys = keys;
    return keys;
  }
}
