/** Logs errors that no call awaits, such as rejected promises and errors in timers. They never end the isolate. */
import { currentCall } from "../runs/call.ts";
import { cleanStack } from "../runs/call_errors.ts";
import { markHandled, markUnhandled } from "../runs/unhandled_failures.ts";
import { runningAction } from "../runs/run_action.ts";
import { inspected } from "../ctx/log_lines.ts";

/** Reports per interval. Further ones are counted. */
const REPORTS_MAX = 20;
const REPORTS_MS = 10_000;

const { error: printError } = console;
const realNow = Date.now;

let reports = 0;
let since = 0;

/** Registers the listeners. Called before app code is loaded. */
export function catchUncaught(): void {
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    const call = currentCall() ?? runningAction();
    if (call !== null) markUnhandled(call, event);
    report("A promise that was left behind was rejected", event.reason);
  });
  addEventListener("rejectionhandled", markHandled);
  addEventListener("error", (event) => {
    event.preventDefault();
    report("An error was not caught", event.error);
  });
}

/** Logs the error with the running call. Prints it if there is none or its answer was already sent. */
function report(what: string, thrown: unknown): void {
  const text = `${what}: ${textOf(thrown)}`;
  const call = currentCall();
  if (call === null) return printBounded(text);
  if (call.logLines.taken) return printBounded(`${call.udfPath}: ${text}`);
  call.logLines.add("ERROR", text);
}

function textOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspected(thrown);
  try {
    const stack = cleanStack(thrown.stack);
    return `${thrown.name}: ${thrown.message}${stack === "" ? "" : `\n${stack}`}`;
  } catch {
    // Reading it ran code of the app that threw again.
    return "an error that cannot be read";
  }
}

/** Prints to the isolate's standard error, rate limited. */
export function printBounded(text: string): void {
  const now = realNow();
  if (now - since > REPORTS_MS) {
    since = now;
    reports = 0;
  }
  if (++reports <= REPORTS_MAX) printError(text);
  else if (reports === REPORTS_MAX + 1) {
    printError(`Further output is dropped for ${REPORTS_MS / 1000} s`);
  }
}
