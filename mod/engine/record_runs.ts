/**
 * Replay records of the open group. Records of one session and caller with consecutive request ids form a _run_, which
 * becomes one row: a client with many mutations in flight costs one insert for each group. Runs of the same session and
 * caller never overlap, so a record is in the first run that ends at or after its request id.
 */
import { replayLimits } from "./limits.ts";
import type { RecordKey } from "./types.ts";

const { runRecordsMax, runCharsMax } = replayLimits;

/** Records with consecutive request ids, from `oldest` on. */
export interface RecordRun {
  readonly session: string;
  readonly principal: string;
  readonly oldest: number;
  readonly answers: string[];
  /** The newest commit when each record was made. */
  readonly ts: number[];
  chars: number;
}

export function lastRequestId({ oldest, answers }: RecordRun): number {
  return oldest + answers.length - 1;
}

/** A session of one principal in the writer's memory. */
export interface RecordCaller {
  readonly session: string;
  readonly principal: string;
  /** Highest request id with a record; `null` if not looked up. After a rollback maybe too high, never too low. */
  highest: number | null;
  /** Unwritten runs; the newest is last. */
  runs: RecordRun[];
}

const none: RecordRun[] = [];

/** Returns a caller about whom nothing is known. */
export function newCaller({ sessionId, principal }: RecordKey): RecordCaller {
  return { session: sessionId, principal: principalText(principal), highest: null, runs: none };
}

/** Returns the unwritten answer of a request id, or `null`. */
export function pendingAnswer({ runs }: RecordCaller, requestId: number): string | null {
  for (const run of runs) {
    const answer = run.answers[requestId - run.oldest];
    if (answer !== undefined) return answer;
  }
  return null;
}

/** Adds a new record. `ts` is the newest commit. */
export function addAnswer(
  caller: RecordCaller,
  record: { readonly requestId: number; readonly answer: string; readonly ts: number },
): void {
  const { requestId, answer, ts } = record;
  const { runs } = caller;
  const last = runs.length === 0 ? undefined : runs[runs.length - 1];
  if (last !== undefined && requestId === last.oldest + last.answers.length && hasCapacity(last)) {
    last.answers.push(answer);
    last.ts.push(ts);
    last.chars += answer.length;
    return;
  }
  const { session, principal } = caller;
  const run = { session, principal, oldest: requestId, answers: [answer], ts: [ts], chars: answer.length };
  addRun(caller, run);
}

/** Adds a run of new records, and merges it with the last run if it continues that. */
export function addRun(caller: RecordCaller, run: RecordRun): void {
  const last = caller.runs.length === 0 ? undefined : caller.runs[caller.runs.length - 1];
  if (last !== undefined && run.oldest === lastRequestId(last) + 1 && fits(last, run)) {
    for (const answer of run.answers) last.answers.push(answer);
    for (const ts of run.ts) last.ts.push(ts);
    last.chars += run.chars;
  } else if (last === undefined) caller.runs = [run];
  else caller.runs.push(run);
}

/** Removes and returns the unwritten runs. */
export function takeRuns(caller: RecordCaller): readonly RecordRun[] {
  const { runs } = caller;
  caller.runs = none;
  return runs;
}

/** The principal of anonymous callers, different from any id. */
export function principalText(principal: string | null): string {
  return principal === null ? "" : `p${principal}`;
}

/** The inverse of {@linkcode principalText}. */
export function principalOf(text: string): string | null {
  return text === "" ? null : text.slice(1);
}

function hasCapacity({ answers, chars }: RecordRun): boolean {
  return answers.length < runRecordsMax && chars < runCharsMax;
}

function fits({ answers, chars }: RecordRun, more: RecordRun): boolean {
  return answers.length + more.answers.length <= runRecordsMax && chars + more.chars <= runCharsMax;
}

export function callerName(session: string, principal: string): string {
  return `${session} ${principal}`;
}
