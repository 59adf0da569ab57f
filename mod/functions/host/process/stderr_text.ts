/** What an isolate writes to standard error: told to the log while it lives, and kept to say why it ended. */

/** Characters kept. The first say why, stack traces come after them. */
const KEPT_CHARS_MAX = 8_192;
const SUMMARY_CHARS_MAX = 500;
/** Longest text handed on at once. */
const TOLD_CHARS_MAX = 4_096;
/** Texts handed on within a window; what comes beyond is counted. */
const TOLD_MAX = 20;
const WINDOW_MS = 10_000;

/** The runtime giving up: pages of addresses follow, which tell nobody anything. */
const GIVING_UP =
  /FATAL ERROR|^# Fatal|^Fatal |<--- Last few GCs|has panicked|panicked at |^# Check failed|^memory allocation of /m;
/** Its whole command line then, with paths and flags. */
const COMMAND_LINE = /^Args: .*$/gm;
/** What it says of itself and of its makers: nothing of why. */
const OF_ITSELF = /^(?:Args|Platform|Version|note):|^stack backtrace:$|^https?:|^=+$/;
/** Where it gave up; why is in the line below. */
const PLACE = /panicked at \S+:\d+:\d+:$/;
/** Lines that say why, best first. */
const TELLING = [
  /out of memory/i,
  /FATAL ERROR/,
  /^# (?:Fatal|Check failed)/,
  /^Fatal /,
  /^memory allocation of /,
  /panicked at /,
  /^error: /i,
];

export interface StderrTextOptions {
  readonly now: () => number;
  /** Takes what was written at once, without line ends around it. */
  readonly tell: (text: string) => void;
}

export class StderrText {
  readonly #options: StderrTextOptions;
  #text = "";
  #givenUp = false;
  #windowAt = -Infinity;
  #told = 0;
  /** Settles when the stream has ended. Never rejects. */
  readonly ended: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array>, options: StderrTextOptions) {
    this.#options = options;
    this.ended = this.#read(stream);
  }

  /** Everything kept. */
  get text(): string {
    return this.#text;
  }

  /** One line that says why the process ended, or `""`. */
  get summary(): string {
    const lines = this.#text.split("\n").map((line) => line.trim()).filter((line) =>
      line !== "" && !OF_ITSELF.test(line)
    );
    const telling = TELLING.map((pattern) => lines.findIndex((line) => pattern.test(line))).find((at) =>
      at >= 0
    );
    const line = lines.at(telling ?? -1) ?? "";
    const why = telling !== undefined && PLACE.test(line) ? lines[telling + 1] ?? "" : "";
    return (why === "" ? line : `panicked: ${why}`).slice(0, SUMMARY_CHARS_MAX);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of stream) this.#take(decoder.decode(bytes, { stream: true }));
    } catch {
      // The process is gone in the middle of a write: what was read stays.
    }
  }

  #take(text: string): void {
    if (this.#text.length < KEPT_CHARS_MAX) {
      // It may come in pieces: the beginning that stays takes the next one along.
      this.#text = (this.#text + text).replace(COMMAND_LINE, "Args: ").slice(0, KEPT_CHARS_MAX);
    }
    this.#givenUp ||= GIVING_UP.test(text);
    if (this.#givenUp || text.trim() === "") return;
    const now = this.#options.now();
    if (now - this.#windowAt > WINDOW_MS) {
      this.#windowAt = now;
      this.#told = 0;
    }
    this.#told++;
    if (this.#told <= TOLD_MAX) this.#options.tell(text.trim().slice(0, TOLD_CHARS_MAX));
    else if (this.#told === TOLD_MAX + 1) this.#options.tell("More follows; it is left out for a while");
  }
}
