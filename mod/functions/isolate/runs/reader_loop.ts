/** A reader's work: waves of queries, each in one snapshot. */
import type { ReaderDatabase } from "../../../engine/mod.ts";
import type { FrameSender } from "../../wire/segment_frames.ts";
import type { Pinned, RunWave, WaveAnswers } from "../../wire/messages.ts";
import type { App } from "../app/app.ts";
import { wireOutcome } from "./ending.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import { runQuery } from "./run_query.ts";

const monotonic = performance.now.bind(performance);

/** Answers leave together, but not later than this. */
const CHUNK_MS = 10;
const CHUNK_CHARS = 256 * 1024;

/** What a reader works with. */
export interface ReaderParts {
  readonly app: App;
  readonly database: ReaderDatabase;
  readonly progress: ProgressFile;
  readonly sender: FrameSender;
}

type Answer = WaveAnswers["answers"][number];

/**
 * How long the last run of each function took. A message leaves only between two runs, so what is ready must not wait
 * behind a run that may take long.
 */
const lastMs = new Map<string, number>();
const FUNCTIONS_MAX = 10_000;

function mayTakeLong(udfPath: string): boolean {
  return (lastMs.get(udfPath) ?? Infinity) >= CHUNK_MS;
}

/** Runs a wave and answers it. */
export async function runWave(
  { app, database, progress, sender }: ReaderParts,
  { wave, queries }: RunWave,
): Promise<void> {
  const ts = database.openSnapshot();
  await sender.send({ type: "Pinned", wave, ts } satisfies Pinned);
  let answers: Answer[] = [];
  let segments: string[] = [];
  let chars = 0;
  let answered = 0;
  let chunkSince = monotonic();
  for (const [position, query] of queries.entries()) {
    const at = progress.begin(position);
    const startedAt = monotonic();
    const { ending, logLines, readSet, scope, nondeterministic } = await runQuery(app, query, {
      reads: database.beginQuery(),
      at,
    });
    const now = monotonic();
    const outcome = wireOutcome(ending, { logLines, segments });
    answers.push({ outcome, readSet, scope, nondeterministic, durationMs: now - startedAt });
    chars += ending.ok ? ending.text.length : ending.error.message.length;
    if (lastMs.size >= FUNCTIONS_MAX) lastMs.clear();
    lastMs.set(query.udfPath, now - startedAt);
    const next = queries[position + 1];
    if (next === undefined) break;
    if (chars >= CHUNK_CHARS || now - chunkSince >= CHUNK_MS || mayTakeLong(next.udfPath)) {
      // Awaited, so that a wave of large results never piles up here.
      await sender.send(
        { type: "WaveAnswers", wave, from: answered, answers, last: false } satisfies WaveAnswers,
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
    { type: "WaveAnswers", wave, from: answered, answers, last: true } satisfies WaveAnswers,
    segments,
  );
}
