/** Standard error of an isolate: logged while it runs, and kept to explain why it ended. */

/** Characters kept. The first ones contain the reason, stack traces follow. */
const KEPT_CHARS_MAX = 8_192;
const SUMMARY_CHARS_MAX = 500;
/** Longest text logged at once. */
const LOGGED_CHARS_MAX = 4_096;
/** Texts logged within a window. Further ones are counted. */
const LOGGED_MAX = 20;
const WINDOW_MS = 10_000;

/** The runtime's abort message. Pages of addresses follow. */
const ABORT_MESSAGE =
  /FATAL ERROR|^# Fatal|^Fatal |<--- Last few GCs|has panicked|panicked at |^# Check failed|^memory allocation of /m;
/** Followed by its command line with paths and flags. */
const COMMAND_LINE = /^Args: .*$/gm;
/** Boilerplate without a reason. */
const BOILERPLATE = /^(?:Args|Platform|Version|note):|^stack backtrace:$|^https?:|^=+$/;
/** Location of the abort. The reason is in the next line. */
const PANIC_LOCATION = /panicked at \S+:\d+:\d+:$/;
/** Lines that contain the reason, best first. */
const REASON_PATTERNS = [
  /out of memory/i,
  /FATAL ERROR/,
  /^# (?:Fatal|Check failed)/,
  /^Fatal /,
  /^memory allocation of /,
  /panicked at /,
  /^error: /i,
];

export interface IsolateStderrOptions {
  readonly now: () => number;
  /** Called with text as it is written, without surrounding line breaks. */
  readonly log: (text: string) => void;
}

export class IsolateStderr {
  readonly #options: IsolateStderrOptions;
  #text = "";
  #aborted = false;
  #windowAt = -Infinity;
  #logged = 0;
  /** Settles when the stream has ended. Never rejects. */
  readonly ended: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array>, options: IsolateStderrOptions) {
    this.#options = options;
    this.ended = this.#read(stream);
  }

  /** Everything kept. */
  get text(): string {
    return this.#text;
  }

  /** One line with the reason why the process ended, or `""`. */
  get summary(): string {
    const lines = this.#text.split("\n").map((line) => line.trim()).filter((line) =>
      line !== "" && !BOILERPLATE.test(line)
    );
    const reasonAt = REASON_PATTERNS.map((pattern) => lines.findIndex((line) => pattern.test(line))).find((
      at,
    ) => at >= 0);
    const line = lines.at(reasonAt ?? -1) ?? "";
    const why = reasonAt !== undefined && PANIC_LOCATION.test(line) ? lines[reasonAt + 1] ?? "" : "";
    return (why === "" ? line : `panicked: ${why}`).slice(0, SUMMARY_CHARS_MAX);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of stream) this.#append(decoder.decode(bytes, { stream: true }));
    } catch {
      // The process died while writing. Keeps what was read.
    }
  }

  #append(text: string): void {
    if (this.#text.length < KEPT_CHARS_MAX) {
      // A message may arrive in pieces. The start of one is kept for the next read.
      this.#text = (this.#text + text).replace(COMMAND_LINE, "Args: ").slice(0, KEPT_CHARS_MAX);
    }
    this.#aborted ||= ABORT_MESSAGE.test(text);
    if (this.#aborted || text.trim() === "") return;
    const now = this.#options.now();
    if (now - this.#windowAt > WINDOW_MS) {
      this.#windowAt = now;
      this.#logged = 0;
    }
    this.#logged++;
    if (this.#logged <= LOGGED_MAX) this.#options.log(text.trim().slice(0, LOGGED_CHARS_MAX));
    else if (this.#logged === LOGGED_MAX + 1) this.#options.log("Further output is dropped for a while");
  }
}
