/** Shows progress with rate and remaining time on standard error: a bar on a terminal, otherwise a line at intervals. */
import cliProgress from "cli-progress";
import process from "node:process";
import type { Progress } from "../ops/mod.ts";
import type { PointProgress } from "../ops/replication/mod.ts";

/** The part of the untyped package that is used. */
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

/** Interval between two lines about the same step. */
const EVERY_MS = 2_000;

/** The part of a terminal stream that is used. */
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
  #shownAt = 0;
  #bar: Bar | null = null;

  constructor(
    { terminal = process.stderr, now = () => performance.now() }: ConsoleProgressOptions = {},
  ) {
    this.#terminal = terminal;
    this.#now = now;
  }

  /** Shows the progress of a step. A new `what` starts a new step. */
  show(progress: Progress): void {
    const now = this.#now();
    if (progress.what !== this.#what) this.#begin(progress, now);
    const { done, of } = progress;
    const parts = figures(progress, now - this.#begun);
    if (this.#bar !== null) {
      this.#bar.update(Math.min(done, of ?? done), parts);
      return;
    }
    if (now - this.#shownAt < EVERY_MS) return;
    this.#shownAt = now;
    this.#line(
      `${progress.what}: ${parts.amount}, ${parts.rate}${parts.left === "" ? "" : `, ${parts.left}`}`,
    );
  }

  showStep(what: string): void {
    if (what !== this.#what) this.#begin({ what, done: 0, of: null, unit: "bytes" }, this.#now());
  }

  /** Ends the current step. */
  [Symbol.dispose](): void {
    this.#bar?.stop();
    this.#bar = null;
    this.#what = "";
  }

  #begin({ what, of, unit }: Progress, now: number): void {
    this[Symbol.dispose]();
    this.#what = what;
    this.#begun = now;
    this.#shownAt = now;
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

/** Formats the amount done, the rate and the remaining time. */
function figures(
  { done, of, unit }: Progress,
  elapsedMs: number,
): { readonly amount: string; readonly rate: string; readonly left: string } {
  const perSecond = elapsedMs > 0 ? done / (elapsedMs / 1_000) : 0;
  const doneText = of !== null && unit !== "bytes" ? String(done) : amountText(done, unit);
  const amount = of === null ? doneText : `${doneText} of ${amountText(of, unit)}`;
  const left = of === null || perSecond === 0
    ? ""
    : `about ${spelled(Math.max(0, of - done) / perSecond)} left`;
  return { amount, rate: `${amountText(Math.round(perSecond), unit)}/s`, left };
}

const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

function amountText(amount: number, unit: Progress["unit"]): string {
  if (unit !== "bytes") return `${amount} ${amount === 1 ? unit.slice(0, -1) : unit}`;
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

export function showPoint(console: ConsoleProgress, progress: PointProgress): void {
  switch (progress.step) {
    case "rows":
      return console.show({
        what: "Fetching journal rows",
        done: progress.rows,
        of: progress.ofRows,
        unit: "rows",
      });
    case "fetch":
      return console.showStep(`Fetching the snapshot, ${progress.bytes} bytes`);
    case "unpack":
      return console.showStep("Unpacking the snapshot");
    case "replay":
      return console.show({
        what: "Replaying journal rows",
        done: progress.rows,
        of: progress.ofRows,
        unit: "rows",
      });
    case "check":
      return console.showStep("Checking the database");
    default:
      return progress satisfies never;
  }
}
