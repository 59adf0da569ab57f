/** `--dev`: the log lines of functions in the terminal, each with its time and the function's name. */
import type { RunEnd, RunObserver } from "../../functions/host/mod.ts";
import type { Log, LogLevel } from "../../kit/log.ts";
import { devLimits } from "../limits.ts";

const LINE = /^\[(DEBUG|INFO|WARN|ERROR)\] ([^]*)$/;

/** Whatever a function was called by, a schedule or a route: its lines appear when it ends. A flood is cut off each second. */
export class RunLines implements RunObserver {
  readonly #log: Log;
  readonly #now: () => number;
  #second = 0;
  #shown = 0;
  /** Lines shown of the newest requests. */
  readonly #ofRequests = new Map<number, string[]>();

  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log;
    this.#now = now;
  }

  runEnded(_kind: unknown, { call, outcome, request }: Pick<RunEnd, "call" | "outcome" | "request">): void {
    if (outcome.logLines.length === 0) return;
    for (const line of this.#newOf(request, outcome.logLines)) {
      if (!this.#room()) return;
      const [, level = "INFO", text = line] = LINE.exec(line) ?? [];
      // What the app says itself is explained by nobody else.
      this.#log(level.toLowerCase() as LogLevel, `${call.udfPath}: ${visible(text)}`);
    }
  }

  /** Without the lines of what it called, which ended before. */
  #newOf(request: number, lines: readonly string[]): string[] {
    const shown = this.#ofRequests.get(request) ?? [];
    const left = [...shown];
    const fresh = lines.filter((line) => {
      const at = left.indexOf(line);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    if (!this.#ofRequests.has(request) && this.#ofRequests.size >= devLimits.requestsMax) {
      for (const oldest of this.#ofRequests.keys()) {
        this.#ofRequests.delete(oldest);
        break;
      }
    }
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
      this.#log("warn", "Functions log more than a terminal can show: the dashboard has it all");
    }
    return this.#shown <= devLimits.linesPerSecondMax;
  }
}

/** Without characters that would do something to a terminal; further lines are told from entries of their own. */
function visible(text: string): string {
  return text.replaceAll(/(?!\n)\p{Cc}/gu, "?").replaceAll("\n", "\n    ");
}
