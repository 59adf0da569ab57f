/** Tells on standard error how far a restore is, now and then. */
import type { PointProgress } from "../ops/replication/mod.ts";

/** Time between two lines about the same step. */
const EVERY_MS = 2_000;

export class ConsoleProgress {
  #step = "";
  #begun = 0;
  #told = -Infinity;
  readonly #write: (line: string) => void;
  readonly #now: () => number;

  constructor(
    {
      write = (line) => void Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`)),
      now = performance.now.bind(
        performance,
      ),
    }: { readonly write?: (line: string) => void; readonly now?: () => number } = {},
  ) {
    this.#write = write;
    this.#now = now;
  }

  show(progress: PointProgress): void {
    const now = this.#now();
    if (progress.step !== this.#step) {
      this.#step = progress.step;
      this.#begun = now;
      this.#told = now;
      this.#write(firstLine(progress));
      return;
    }
    if (progress.step !== "replay" || now - this.#told < EVERY_MS) return;
    this.#told = now;
    const seconds = (now - this.#begun) / 1_000;
    const rate = progress.rows / seconds;
    const left = Math.ceil((progress.ofRows - progress.rows) / rate);
    this.#write(
      `Replaying: ${progress.rows} of ${progress.ofRows} journal rows, ts ${progress.ts}, ${
        Math.round(rate)
      } rows/s, ` +
        `about ${left} s left`,
    );
  }

  end(): void {
    this.#step = "";
  }
}

function firstLine(progress: PointProgress): string {
  switch (progress.step) {
    case "fetch":
      return `Fetching the snapshot, ${progress.bytes} bytes`;
    case "unpack":
      return "Unpacking the snapshot";
    case "replay":
      return `Replaying ${progress.ofRows} journal rows`;
    case "check":
      return "Checking the database";
    default:
      return progress satisfies never;
  }
}
