/** Large results of live queries that a reader has sent: the next run of a query sends only the part that differs. */
import { commonPrefixLength, commonSuffixLength } from "../../../kit/common_ends.ts";
import type { WireOutcome } from "../../wire/messages.ts";

const MiB = 1024 * 1024;
/** A shorter result is sent whole. */
const CHARS_MIN = MiB / 16;
/** Characters of all results. The oldest are removed. */
const CHARS_MAX = 8 * MiB;

/** Makes names unique among all readers. */
const prefix = crypto.randomUUID();

export class KeptResults {
  /** Results by name, oldest first. */
  readonly #texts = new Map<string, string>();
  #chars = 0;
  #count = 0;

  /** Keeps a result, and appends the part that main lacks to `segments`. `base` names a result that main has. */
  send(
    text: string,
    { base, logLines, segments }: {
      readonly base: string;
      readonly logLines: readonly string[];
      readonly segments: string[];
    },
  ): WireOutcome {
    const before = this.#texts.get(base);
    const kept = before === text ? base : this.#keep(text, base);
    if (before === undefined) return { value: segments.push(text) - 1, logLines, ...(kept && { kept }) };
    const most = Math.min(before.length, text.length);
    const same = commonPrefixLength(before, { other: text, most });
    const sameEnd = commonSuffixLength(before, { other: text, most: most - same });
    // The part is sent as UTF-8, which has no halves of surrogate pairs.
    const head = (text.charCodeAt(same - 1) & 0xfc00) === 0xd800 ? same - 1 : same;
    const tail = (text.charCodeAt(text.length - sameEnd) & 0xfc00) === 0xdc00 ? sameEnd - 1 : sameEnd;
    const value = segments.push(text.slice(head, text.length - tail)) - 1;
    return { value, spliced: [head, tail], logLines, ...(kept && { kept }) };
  }

  /** Replaces a query's last result. Returns the name of the new one, "" if it is not kept. */
  #keep(text: string, base: string): string {
    this.#remove(base);
    if (text.length < CHARS_MIN || text.length > CHARS_MAX) return "";
    const name = `${prefix}-${++this.#count}`;
    this.#texts.set(name, text);
    this.#chars += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#chars <= CHARS_MAX) break;
      this.#remove(oldest);
    }
    return name;
  }

  #remove(name: string): void {
    this.#chars -= this.#texts.get(name)?.length ?? 0;
    this.#texts.delete(name);
  }
}
