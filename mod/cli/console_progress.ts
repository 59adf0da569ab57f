/**
 * Tells on standard error how far work is, with rate and time left: by a bar on a terminal, elsewhere by a line at the
 * beginning of each step and then every now and then.
 */
import cliProgress from "cli-progress";
import process from "node:process";
import type { Progress } from "../ops/mod.ts";

/** What of the package, which brings no types, is used. */
interface Bars {
  readonly SingleBar: new (options: object, preset: unknown) => Bar;
  readonly Presets: { readonly legacy: unknown };
}

interface Bar {
  start(total: number, value: number, payload: object): void;
  update(value: number, payload: object): void;
  stop(): void;
}

const { SingleBar, Presets } = cliProgress as unknown as Bars;

/** Time between two lines about the same step. */
const EVERY_MS = 2_000;

/** A terminal, as far as it is used. */
export interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface ConsoleProgressOptions {
  readonly terminal?: Terminal;
  /** Milliseconds. */
  readonly now?: () => number;
}

export class ConsoleProgress implements Disposable {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  #what = "";
  #begun = 0;
  #told = 0;
  #bar: Bar | null = null;

  constructor(
    { terminal = process.stderr, now = () => performance.now() }: ConsoleProgressOptions = {},
  ) {
    this.#terminal = terminal;
    this.#now = now;
  }

  /** Shows how far a step is. Another `what` begins another step. */
  show(progress: Progress): void {
    const now = this.#now();
    if (progress.what !== this.#what) this.#begin(progress, now);
    const { done, of } = progress;
    const parts = figures(progress, now - this.#begun);
    if (this.#bar !== null) {
      this.#bar.update(Math.min(done, of ?? done), parts);
      return;
    }
    if (now - this.#told < EVERY_MS) return;
    this.#told = now;
    this.#line(
      `${progress.what}: ${parts.amount}, ${parts.rate}${parts.left === "" ? "" : `, ${parts.left}`}`,
    );
  }

  /** Tells of a step of which nobody knows how far it is. */
  tell(what: string): void {
    if (what !== this.#what) this.#begin({ what, done: 0, of: null, unit: "bytes" }, this.#now());
  }

  /** Ends the step that is shown. */
  [Symbol.dispose](): void {
    this.#bar?.stop();
    this.#bar = null;
    this.#what = "";
  }

  #begin({ what, of, unit }: Progress, now: number): void {
    this[Symbol.dispose]();
    this.#what = what;
    this.#begun = now;
    this.#told = now;
    if (of === null || of <= 0 || this.#terminal.isTTY !== true) {
      this.#line(of === null || of <= 0 ? what : `${what}, ${amountText(of, unit)}`);
      return;
    }
    this.#bar = new SingleBar({
      format: "{what} [{bar}] {percentage} %  {amount}  {rate}  {left}",
      stream: this.#terminal,
      hideCursor: true,
      fps: 5,
    }, Presets.legacy);
    this.#bar.start(of, 0, { what, amount: amountText(0, unit), rate: "", left: "" });
  }

  #line(text: string): void {
    this.#terminal.write(`${text}\n`);
  }
}

/** What was done of how much, how fast, and how long the rest takes at that rate. */
function figures(
  { done, of, unit }: Progress,
  elapsedMs: number,
): { readonly amount: string; readonly rate: string; readonly left: string } {
  const perSecond = elapsedMs > 0 ? done / (elapsedMs / 1_000) : 0;
  const soFar = of !== null && unit !== "bytes" ? String(done) : amountText(done, unit);
  const amount = of === null ? soFar : `${soFar} of ${amountText(of, unit)}`;
  const left = of === null || perSecond === 0
    ? ""
    : `about ${spelled(Math.max(0, of - done) / perSecond)} left`;
  return { amount, rate: `${amountText(Math.round(perSecond), unit)}/s`, left };
}

const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

function amountText(amount: number, unit: Progress["unit"]): string {
  if (unit !== "bytes") return `${amount} ${unit}`;
  let size = 0;
  let value = amount;
  while (value >= 1024 && size < SIZES.length - 1) {
    value /= 1024;
    size++;
  }
  return `${size === 0 ? value : value.toFixed(1)} ${SIZES[size]}`;
}

function spelled(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
