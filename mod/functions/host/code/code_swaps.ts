/** Replaces the served code between two commits, and the settings of actions. Readers and runners follow the writer. */
import type { Log } from "../../../kit/log.ts";
import type { Version } from "../../versions/version_store.ts";
import type { AppCheck, CheckBounds } from "../../wire/messages.ts";
import type { CommitPublisher } from "../commit_publisher.ts";
import type { HostCode } from "../host_parts.ts";
import type { PeerReaders, ServedApp } from "../leader_port.ts";
import type { IsolateStarter } from "../process/isolate.ts";
import type { ReaderPool } from "../readers/reader_pool.ts";
import type { Runners } from "../runners/runners.ts";
import type { MutationWriter, ReplaceResult } from "../writer/mutation_writer.ts";
import type { AdHocQueries } from "./ad_hoc_queries.ts";
import type { ServedCode } from "./served_code.ts";

export interface LoadOptions {
  /** Called when no commit can precede the swap any more. If it rejects, `load` rejects with the same error. Optional. */
  readonly confirm?: () => Promise<void>;
  /** Never rejects. */
  readonly swapped?: () => Promise<void>;
}

/** Thrown if a version cannot be loaded. The message says why. */
export class BrokenVersionError extends Error {
  override readonly name = "BrokenVersionError";
}

export interface CodeSwapsParts {
  readonly starter: IsolateStarter;
  readonly writer: MutationWriter;
  readonly readers: ReaderPool;
  readonly runners: Pick<Runners, "replace">;
  readonly served: ServedCode;
  readonly commits: CommitPublisher;
  readonly code: HostCode | undefined;
  readonly log: Log;
  readonly adHoc: AdHocQueries;
}

export class CodeSwaps {
  /** Runs queries that are not part of the served code. */
  readonly adHoc: AdHocQueries;
  readonly #parts: CodeSwapsParts;
  /** Settles with the newest swap. */
  #last: Promise<unknown> = Promise.resolve();
  #peers: PeerReaders | null = null;

  constructor(parts: CodeSwapsParts) {
    this.#parts = parts;
    this.adHoc = parts.adHoc;
  }

  /** Sets the other processes that read this database. */
  setPeers(peers: PeerReaders): void {
    this.#peers = peers;
  }

  /** Loads the author's current code. If it is broken or cannot be stored, the old code stays in service. */
  reload(): Promise<ReplaceResult> {
    return this.oneByOne(async () => {
      const { code } = this.#parts;
      if (code === undefined) return await this.#load(null);
      if (code.source === null) {
        return { ok: false, message: "The code is not served from a functions folder" };
      }
      try {
        return await this.#load(await code.versions.make(code.source));
      } catch (error) {
        return { ok: false, message: error instanceof Error ? error.message : String(error) };
      }
    });
  }

  /**
   * Loads a version of the code. A new writer migrates the database, readers and runners follow between two commits, and running
   * actions finish with their code. If the version is broken or does not match the data, the old one stays in service. Calls
   * run one after another. `confirm` may reject the swap immediately before it. `swapped` runs after the migration, before the
   * new writer's first commit.
   */
  load(version: Version, options: LoadOptions = {}): Promise<ReplaceResult> {
    return this.oneByOne(() => this.#load(version, options));
  }

  /** Loads a version in a separate isolate that checks all documents in a snapshot. Writes nothing. Rejects if it cannot be loaded. */
  async check(version: Version, bounds: CheckBounds): Promise<AppCheck> {
    const started = await this.#parts.starter.check?.(version, bounds);
    if (started === undefined) throw new Error("These isolates cannot check another version");
    if (!started.ok) throw new BrokenVersionError(started.message);
    const { ready: { check } } = started.isolate;
    await started.isolate.close();
    if (check === undefined) throw new Error("An isolate returned no result of the check");
    return check;
  }

  /** Pauses queries until {@linkcode follow}. Resolves when running ones have their snapshots. */
  async holdQueries(): Promise<void> {
    await this.#parts.readers.hold();
  }

  /** Switches to the leader's app. `null` keeps the current one. Rejects if its version cannot be fetched. */
  follow(app: ServedApp | null): Promise<void> {
    return this.oneByOne(async () => {
      try {
        if (app !== null) await this.#follow(app);
      } finally {
        this.#parts.readers.release();
      }
      if (app !== null) this.#parts.commits.reloaded();
    });
  }

  /** Prestarts isolates for the next edit of the code, and a reader, because the author will open the app. */
  standBy(): void {
    this.#parts.readers.prepare();
    this.#parts.starter.standBy?.();
  }

  /** Sets `ctx.env` of actions. Running actions keep theirs. */
  useEnv(env: Readonly<Record<string, string>>): void {
    this.#parts.starter.useEnv?.(env);
    this.#parts.runners.replace();
  }

  async oneByOne<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return await result;
  }

  /** Records that the version is served. Failing to remove old versions is not fatal. */
  async serve(version: Version): Promise<void> {
    const { served, log } = this.#parts;
    await served.serve(version).catch((error) =>
      log("warn", "Old versions of the code were not removed", { error })
    );
  }

  /** `null` loads the starter's version. */
  async #load(
    version: Version | null,
    { confirm, swapped }: LoadOptions = {},
  ): Promise<ReplaceResult> {
    const { starter, writer, readers, runners, served, commits } = this.#parts;
    let held = false;
    let result: ReplaceResult | null = null;
    let refusal: { readonly error: unknown } | null = null;
    // The current code is served in the meantime.
    using _prepared = version === null ? null : await starter.prepare?.(version) ?? null;
    try {
      result = await writer.replace(
        async (ready) => {
          // From now on lost isolates are replaced with the new code.
          if (version !== null) starter.use?.(version);
          served.declare(ready);
          await swapped?.();
          readers.replace();
          runners.replace();
          if (version !== null) served.exchange(version);
        },
        {
          before: async () => {
            // Before the readers are paused, because it may run queries.
            await confirm?.().catch((error) => refusal = { error });
            if (refusal !== null) return;
            held = true;
            await Promise.all([readers.hold(), this.#peers?.hold()]);
          },
          start: async () =>
            refusal === null
              ? await starter.start("writer", version ?? undefined)
              : { ok: false, broken: false, message: "The load was refused" },
        },
      );
    } finally {
      // Otherwise they may be paused because the database is handed over.
      if (held) {
        readers.release();
        this.#peers?.release(result?.ok === true && version !== null ? served.app : null);
      }
    }
    if (refusal !== null) throw (refusal as { readonly error: unknown }).error;
    if (!result.ok) return result;
    commits.reloaded();
    if (version !== null) await this.serve(version);
    return result;
  }

  async #follow(app: ServedApp): Promise<void> {
    const { starter, served, readers, runners } = this.#parts;
    const version = await served.versions.get(app.version);
    await served.hold(version);
    starter.use?.(version);
    served.declare(app);
    readers.replace();
    runners.replace();
  }
}
