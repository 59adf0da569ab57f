/** Errors that no call awaits: a promise left behind, a timer's callback. They are logged and never end the isolate. */
import { currentCall } from "../runs/call.ts";
import { cleanStack } from "../runs/call_errors.ts";
import { noteLost, noteTaken } from "../runs/lost_failures.ts";
import { runningAction } from "../runs/run_action.ts";
import { inspected } from "../ctx/log_lines.ts";

/** Told at most this often; more within the time is counted. */
const REPORTS_MAX = 20;
const REPORTS_MS = 10_000;

const { error: printError } = console;
const realNow = Date.now;

let reports = 0;
let since = 0;

/** Starts to listen, before app code is loaded. */
export function catchUncaught(): void {
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    const call = currentCall() ?? runningAction();
    if (call !== null) noteLost(call, event);
    report("A promise that was left behind was rejected", event.reason);
  });
  addEventListener("rejectionhandled", noteTaken);
  addEventListener("error", (event) => {
    event.preventDefault();
    report("An error was not caught", event.error);
  });
}

/** Adds the error to the log lines of the call whose code is running; prints it when none is, or the call has its answer. */
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
    // Reading it ran code of the app, which threw again: as an uncaught error that would come back here.
    return "an error that cannot be read";
  }
}

/** Prints to the isolate's standard error, but not without end. */
export function printBounded(text: string): void {
  const now = realNow();
  if (now - since > REPORTS_MS) {
    since = now;
    reports = 0;
  }
  if (++reports <= REPORTS_MAX) printError(text);
  else if (reports === REPORTS_MAX + 1) {
    printError(`More was printed; it is left out for ${REPORTS_MS / 1000} s`);
  }
}
