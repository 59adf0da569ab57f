/** Runs batches of queries in a reader, each at one snapshot. */
import type { ReaderDatabase } from "../../../engine/mod.ts";
import type { FrameSender } from "../../wire/segment_frames.ts";
import type { Pinned, QueryBatchAnswers, RunQueryBatch, ToIsolate, WireQuery } from "../../wire/messages.ts";
import type { App } from "../app/app.ts";
import { wireOutcome } from "./ending.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import { KeptResults } from "./kept_results.ts";
import { runQuery } from "./run_query.ts";

const monotonic = performance.now.bind(performance);

/** Answers are sent together, but at least this often. */
const CHUNK_MS = 10;
const CHUNK_CHARS = 256 * 1024;

export interface ReaderParts {
  readonly app: App;
  readonly database: ReaderDatabase;
  readonly progress: ProgressFile;
  readonly sender: FrameSender;
  /** Returns the next message of main, `null` at the end. */
  readonly next: () => Promise<ToIsolate | null>;
}

type Answer = QueryBatchAnswers["answers"][number];

/** Duration of each function's last run. Messages are sent between runs only, so answers are sent before a slow query. */
const lastMs = new Map<string, number>();
const FUNCTIONS_MAX = 10_000;
const keptResults = new KeptResults();

function mayTakeLong(udfPath: string): boolean {
  return (lastMs.get(udfPath) ?? Infinity) >= CHUNK_MS;
}

/** Opens the snapshot of a batch. Returns the queries to run, or `null` if another reader runs them. */
async function pin(
  { database, sender, next }: ReaderParts,
  { batch, queries, together }: RunQueryBatch,
): Promise<readonly WireQuery[] | null> {
  for (;;) {
    const ts = database.openSnapshot();
    await sender.send({ type: "Pinned", batch, ts } satisfies Pinned);
    if (together !== true) return queries;
    const go = await next();
    if (go !== null && (go.type !== "QueryBatchGo" || go.batch !== batch)) {
      throw new TypeError(`A reader that waits with batch ${batch} cannot be sent ${go.type}`);
    }
    if (go?.what === "run") return go.more === undefined ? queries : [...queries, ...go.more];
    database.closeSnapshot();
    if (go?.what !== "again") return null;
  }
}

/** Runs a batch and sends its answers. */
export async function runQueryBatch(parts: ReaderParts, asked: RunQueryBatch): Promise<void> {
  const { app, database, progress, sender } = parts;
  const { batch } = asked;
  const queries = await pin(parts, asked);
  if (queries === null) return;
  let answers: Answer[] = [];
  let segments: string[] = [];
  let chars = 0;
  let answered = 0;
  let chunkSince = monotonic();
  for (const [position, query] of queries.entries()) {
    const at = progress.begin(position);
    const startedAt = monotonic();
    const { ending, logLines, ...run } = await runQuery(app, query, { reads: database.beginQuery(), at });
    const now = monotonic();
    const outcome = ending.ok && query.base !== undefined
      ? keptResults.send(ending.text, { base: query.base, logLines, segments })
      : wireOutcome(ending, { logLines, segments });
    answers.push({ outcome, durationMs: now - startedAt, ...run });
    chars += ending.ok ? ending.text.length : ending.error.message.length;
    if (lastMs.size >= FUNCTIONS_MAX) lastMs.clear();
    lastMs.set(query.udfPath, now - startedAt);
    const next = queries[position + 1];
    if (next === undefined) break;
    if (chars >= CHUNK_CHARS || now - chunkSince >= CHUNK_MS || mayTakeLong(next.udfPath)) {
      // Awaited, so that large results do not accumulate.
      await sender.send(
        {
          type: "QueryBatchAnswers",
          batch,
          from: answered,
          answers,
          last: false,
        } satisfies QueryBatchAnswers,
        segments,
      );
      answered += answers.length;
      answers = [];
      segments = [];
      chars = 0;
      chunkSince = monotonic();
    }
  }
  progress.idle();
  database.closeSnapshot();
  await sender.send(
    { type: "QueryBatchAnswers", batch, from: answered, answers, last: true } satisfies QueryBatchAnswers,
    segments,
  );
}
