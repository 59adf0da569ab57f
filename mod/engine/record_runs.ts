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
export function newestOf({ oldest, answers }: RecordRun): number {
  return oldest + answers.length - 1;
}

export class RecordRuns {
  /** By caller; the newest run of each is the last. */
  readonly #runs = new Map<string, RecordRun[]>();

  /** The answer saved for a key, or `null`. */
  find(key: RecordKey): string | null {
    for (const run of this.#runs.get(callerOf(key)) ?? []) {
      const answer = run.answers[key.requestId - run.oldest];
      if (answer !== undefined) return answer;
    }
    return null;
  }

  /** Adds a record that is not there yet. `ts`: the newest commit. */
  save(key: RecordKey, { answer, ts }: { readonly answer: string; readonly ts: number }): void {
    const caller = callerOf(key);
    const runs = this.#runs.get(caller);
    const last = runs?.at(-1);
    if (last !== undefined && key.requestId === last.oldest + last.answers.length && hasRoom(last)) {
      last.answers.push(answer);
      last.ts.push(ts);
      last.chars += answer.length;
      return;
    }
    const { sessionId: session, requestId: oldest, principal } = key;
    const run: RecordRun = {
      session,
      principal: principalText(principal),
      oldest,
      answers: [answer],
      ts: [ts],
      chars: answer.length,
    };
    if (runs === undefined) this.#runs.set(caller, [run]);
    else runs.push(run);
  }

  /** Adds a whole run of records that are not there yet. */
  add(run: RecordRun): void {
    const caller = `${run.session} ${run.principal}`;
    const runs = this.#runs.get(caller);
    if (runs === undefined) this.#runs.set(caller, [run]);
    else runs.push(run);
  }

  /** Takes all runs out. */
  take(): RecordRun[] {
    const runs = [...this.#runs.values()].flat();
    this.#runs.clear();
    return runs;
  }

  clear(): void {
    this.#runs.clear();
  }
}

/** Anonymous is a principal of its own, unlike any id. */
export function principalText(principal: string | null): string {
  return principal === null ? "" : `p${principal}`;
}

function hasRoom({ answers, chars }: RecordRun): boolean {
  return answers.length < runRecordsMax && chars < runCharsMax;
}

/** Session and principal in one text. */
export function callerOf({ sessionId, principal }: RecordKey): string {
  return `${sessionId} ${principalText(principal)}`;
}
