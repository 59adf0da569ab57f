/** History of faults and log lines of a cluster, ordered by time. */
const LINES_MAX = 5_000;

export class History {
  readonly #since = performance.now();
  readonly #lines: string[] = [];

  note(line: string): void {
    const seconds = ((performance.now() - this.#since) / 1_000).toFixed(3);
    this.#lines.push(`${seconds.padStart(9)} s  ${line}`);
    if (this.#lines.length > LINES_MAX) this.#lines.shift();
  }

  /** The last of it. */
  last(lines: number): string {
    return this.#lines.slice(-lines).join("\n");
  }
}
