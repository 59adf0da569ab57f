/** The history of a document for administrators: its earlier states, and the runs that wrote them. */
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { ExecutionLog } from "../log/mod.ts";
import { runKinds } from "../log/run_record.ts";
import type { DocumentHistory } from "../replication/document_history.ts";
import { system } from "./system.ts";

export interface DocumentChange {
  /** The commit, and its time in milliseconds since the epoch. */
  readonly ts: number;
  readonly at: number;
  /** The document after it; `null` if it was deleted. */
  readonly document: Readonly<Record<string, unknown>> | null;
  /** The function that wrote it and its caller; `null` if the execution log no longer has the run. */
  readonly run: {
    readonly id: number;
    readonly function: string;
    readonly caller: string | null;
  } | null;
}

/** `null` on a server that does not replicate. */
export type DocumentChanges = {
  /** Newest first. */
  readonly changes: readonly DocumentChange[];
  /** Start of the time for which all changes are known; `null` if there is none. */
  readonly since: number | null;
  /** The document before the oldest change, from a snapshot; `null` if it is not known. */
  readonly before: {
    /** Time of the snapshot in milliseconds since the epoch. */
    readonly at: number;
    /** `null` if the document did not exist. */
    readonly document: DocumentChange["document"];
  } | null;
} | null;

export interface DocumentHistoryOptions {
  readonly calls: Pick<SystemCalls, "query">;
  /** Reads earlier states; `null` on a server that does not replicate. */
  readonly read: () => ((id: string) => Promise<DocumentHistory>) | null;
  readonly log: Pick<ExecutionLog, "page"> | null;
}

/** The end of a run is recorded after its commit, by a clock in milliseconds. */
const BEFORE_MS = 1_000;
const AFTER_MS = 5_000;
const RUNS_MAX = 500;

/** Throws `overloaded` while the history of another document is read, and for documents that administrators cannot read. */
export function documentHistoryAction({ calls, read, log }: DocumentHistoryOptions): MainAction {
  let isReading = false;
  return unauditedAdminAction(
    z.strictObject({ id: z.string().min(1).max(200) }),
    async ({ id }): Promise<DocumentChanges> => {
      await calls.query(system.checkReadableId, { id });
      const states = read();
      if (states === null) return null;
      if (isReading) {
        throw new ServiceError("overloaded", "Another history is being read. Try again in a moment.");
      }
      isReading = true;
      try {
        const { states: found, since, before } = await states(id);
        const changes: DocumentChange[] = [];
        for (const { ts, at, text } of found) {
          changes.push({
            ts,
            at,
            document: parsed(text),
            run: log === null ? null : await runOf(log, { ts, at }),
          });
        }
        return {
          changes,
          since,
          before: before === null ? null : { at: before.at, document: parsed(before.text) },
        };
      } finally {
        isReading = false;
      }
    },
  );
}

function parsed(text: string | null): DocumentChange["document"] {
  return text === null ? null : JSON.parse(text);
}

async function runOf(
  log: Pick<ExecutionLog, "page">,
  { ts, at }: { readonly ts: number; readonly at: number },
): Promise<DocumentChange["run"]> {
  const filter = { from: at - BEFORE_MS, to: at + AFTER_MS, kinds: [runKinds.indexOf("mutation")] };
  const { runs } = await log.page({ filter, limit: RUNS_MAX });
  const run = runs.find((run) => run.ts === ts && run.documentsWritten > 0);
  return run === undefined ? null : { id: run.id, function: run.function, caller: run.caller };
}
