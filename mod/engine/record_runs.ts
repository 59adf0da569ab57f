/**
 * Replay records of the open group, not written yet. Records of one session and caller whose request ids follow one
 * another directly make a _run_, which becomes one row: a client that keeps many mutations in flight costs one insert
 * for each group and not one for each mutation. Runs of the same session and caller never overlap, so a record is found
 * by the first run that ends at its request id or behind it.
 */
import { replayLimits } from "./limits.ts";
import type { RecordKey } from "./types.ts";

const { runRecordsMax, runCharsMax } = replayLimits;

/** The records of the request ids from `oldest` on, one by one. */
export interface RecordRun {
  readonly session: string;
  readonly principal: string;
  readonly oldest: number;
  /** Each is one line of text. */
  readonly answers: string[];
  /** The newest commit when each was made. */
  readonly ts: number[];
  /** Characters of the answers. */
  chars: number;
}

/** The last request id of a run. */
export function lastRequestId({ oldest, answers }: RecordRun): number {
  return oldest + answers.length - 1;
}

/** One session of one principal, in the memory of the writer. */
export interface RecordCaller {
  readonly session: string;
  readonly principal: string;
  /**
   * Its highest request id with a record; `null`: not looked up yet. It may be too high, after a rollback, but never too
   * low: a request above it has no record.
   */
  highest: number | null;
  /** What is not written yet; the newest run is the last. */
  runs: RecordRun[];
}

const none: RecordRun[] = [];

/** A caller of whom nothing is known. */
export function newCaller({ sessionId, principal }: RecordKey): RecordCaller {
  return { session: sessionId, principal: principalText(principal), highest: null, runs: none };
}

/** The answer that is saved for a request id and not written yet, or `null`. */
export function unwrittenAnswer({ runs }: RecordCaller, requestId: number): string | null {
  for (const run of runs) {
    const answer = run.answers[requestId - run.oldest];
    if (answer !== undefined) return answer;
  }
  return null;
}

/** Adds a record that is not there yet. `ts`: the newest commit. */
export function addAnswer(
  caller: RecordCaller,
  record: { readonly requestId: number; readonly answer: string; readonly ts: number },
): void {
  const { requestId, answer, ts } = record;
  const { runs } = caller;
  const last = runs.length === 0 ? undefined : runs[runs.length - 1];
  if (last !== undefined && requestId === last.oldest + last.answers.length && hasRoom(last)) {
    last.answers.push(answer);
    last.ts.push(ts);
    last.chars += answer.length;
    return;
  }
  const { session, principal } = caller;
  const run = { session, principal, oldest: requestId, answers: [answer], ts: [ts], chars: answer.length };
  addRun(caller, run);
}

/** Adds a whole run of records that are not there yet, to the last one where it goes on from that. */
export function addRun(caller: RecordCaller, run: RecordRun): void {
  const last = caller.runs.length === 0 ? undefined : caller.runs[caller.runs.length - 1];
  if (last !== undefined && run.oldest === lastRequestId(last) + 1 && fits(last, run)) {
    for (const answer of run.answers) last.answers.push(answer);
    for (const ts of run.ts) last.ts.push(ts);
    last.chars += run.chars;
  } else if (last === undefined) caller.runs = [run];
  else caller.runs.push(run);
}

/** Takes out what is not written yet. */
export function takeRuns(caller: RecordCaller): readonly RecordRun[] {
  const { runs } = caller;
  caller.runs = none;
  return runs;
}

/** Anonymous is a principal of its own, unlike any id. */
export function principalText(principal: string | null): string {
  return principal === null ? "" : `p${principal}`;
}

function hasRoom({ answers, chars }: RecordRun): boolean {
  return answers.length < runRecordsMax && chars < runCharsMax;
}

function fits({ answers, chars }: RecordRun, more: RecordRun): boolean {
  return answers.length + more.answers.length <= runRecordsMax && chars + more.chars <= runCharsMax;
}

/** Session and principal in one text. */
export function callerName(session: string, principal: string): string {
  return `${session} ${principal}`;
}
