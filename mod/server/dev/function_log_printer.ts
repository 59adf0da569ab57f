/** `--dev`: prints the log lines of functions, each with its time and the function's name. */
import type { RunEnd, RunObserver } from "../../functions/host/mod.ts";
import { NewLogLines } from "../../functions/log_lines.ts";
import type { Log } from "../../kit/log.ts";
import { devLimits } from "../limits.ts";

/** Prints the lines of each run when it ends, up to a limit per second. */
export class FunctionLogPrinter implements RunObserver {
  readonly #log: Log;
  readonly #now: () => number;
  #second = 0;
  #shown = 0;
  readonly #lines = new NewLogLines(devLimits.requestsMax);

  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log;
    this.#now = now;
  }

  runEnded(_kind: unknown, { call, outcome, request }: Pick<RunEnd, "call" | "outcome" | "request">): void {
    for (const { level, text } of this.#lines.of(request, outcome.logLines)) {
      if (!this.#room()) return;
      // The app's own lines get no link to the documentation.
      this.#log(level, `${call.udfPath}: ${visible(text)}`);
    }
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
