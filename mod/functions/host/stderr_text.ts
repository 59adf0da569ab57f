/** What an isolate wrote to standard error, within bounds: all that is left of why the runtime gave up. */

const TEXT_CHARS_MAX = 8_192;
const SUMMARY_CHARS_MAX = 500;

/** Lines that say why, best first: V8's, the runtime's, the shell's. */
const TELLING = [
  /^\[?[^\]]*\]?.*FATAL ERROR: .*/,
  /^# Fatal .*/,
  /^Fatal .*/i,
  /panicked at .*/,
  /^error: .*/i,
];

export class StderrText {
  #text = "";
  /** Settles when the stream has ended. */
  readonly ended: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#read(stream);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of stream) {
        // The first lines say why, stack traces come after them: the beginning is what is kept.
        const room = TEXT_CHARS_MAX - this.#text.length;
        if (room > 0) this.#text += decoder.decode(bytes, { stream: true }).slice(0, room);
      }
    } catch {
      // The process is gone in the middle of a write: what was read stays.
    }
  }

  /** One line that says why the process ended, or `""`. */
  get summary(): string {
    const lines = this.#text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    const telling = TELLING.map((pattern) => lines.find((line) => pattern.test(line))).find(Boolean);
    return (telling ?? lines.at(0) ?? "").slice(0, SUMMARY_CHARS_MAX);
  }

  /** Everything kept, for failures nobody foresaw. */
  get text(): string {
    return this.#text;
  }
}
