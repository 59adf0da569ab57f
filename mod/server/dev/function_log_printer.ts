/** `--dev`: prints the log lines of functions, each with its time and the function's name. */
import { LRUCache } from "lru-cache";
import type { RunEnd, RunObserver } from "../../functions/host/mod.ts";
import type { Log, LogLevel } from "../../kit/log.ts";
import { devLimits } from "../limits.ts";

const LINE = /^\[(DEBUG|INFO|WARN|ERROR)\] ([^]*)$/;

/** Prints the lines of each run when it ends, up to a limit per second. */
export class FunctionLogPrinter implements RunObserver {
  readonly #log: Log;
  readonly #now: () => number;
  #second = 0;
  #shown = 0;
  readonly #ofRequests = new LRUCache<number, string[]>({ max: devLimits.requestsMax });

  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log;
    this.#now = now;
  }

  runEnded(_kind: unknown, { call, outcome, request }: Pick<RunEnd, "call" | "outcome" | "request">): void {
    if (outcome.logLines.length === 0) return;
    for (const line of this.#newOf(request, outcome.logLines)) {
      if (!this.#room()) return;
      const [, level = "INFO", text = line] = LINE.exec(line) ?? [];
      // The app's own lines get no link to the documentation.
      this.#log(level.toLowerCase() as LogLevel, `${call.udfPath}: ${visible(text)}`);
    }
  }

  /** Lines without those of nested calls, which have ended and were printed before. */
  #newOf(request: number, lines: readonly string[]): string[] {
    const shown = this.#ofRequests.get(request) ?? [];
    const left = [...shown];
    const fresh = lines.filter((line) => {
      const at = left.indexOf(line);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    this.#ofRequests.set(request, [...shown, ...fresh]);
    return fresh;
  }

  #room(): boolean {
    const second = Math.floor(this.#now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#shown = 0;
    }
    this.#shown++;
    if (this.#shown === devLimits.linesPerSecondMax + 1) {
      this.#log("warn", "Functions log faster than the terminal can show. See the dashboard for all lines");
    }
    return this.#shown <= devLimits.linesPerSecondMax;
  }
}

/** Replaces control characters and indents further lines. */
function visible(text: string): string {
  return text.replaceAll(/(?!\n)\p{Cc}/gu, "?").replaceAll("\n", "\n    ");
}
