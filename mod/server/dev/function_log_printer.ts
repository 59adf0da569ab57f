/** `--dev`: prints the log lines of functions, each with its time and the function's name. */
import { type CallTrace, RequestTracer } from "../../functions/call_trace.ts";
import type { RunEnd, RunObserver } from "../../functions/host/mod.ts";
import { OwnLogLines } from "../../functions/log_lines.ts";
import type { Log } from "../../kit/log.ts";
import { devLimits } from "../limits.ts";

/** Prints the lines of each run when it ends, up to a limit per second. */
export class FunctionLogPrinter implements RunObserver {
  readonly #log: Log;
  readonly #now: () => number;
  #second = 0;
  #shown = 0;
  readonly #lines = new OwnLogLines(devLimits.callersMax);

  /** Traces are not exported here: they relate an action to its nested calls. */
  readonly #tracer = new RequestTracer(0, () => {});

  /** Prints to `log` without its copies, because telemetry exports the lines of functions itself. */
  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log.stderrOnly ?? log;
    this.#now = now;
  }

  startTrace(): CallTrace {
    return this.#tracer.startTrace();
  }

  runEnded(_kind: unknown, { call, outcome }: Pick<RunEnd, "call" | "outcome">): void {
    for (const { level, text } of this.#lines.of(call, outcome.logLines)) {
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
