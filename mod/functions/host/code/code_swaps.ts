/** Replaces the served code between two commits. Readers and runners follow the writer. */
import type { Log } from "../../../kit/log.ts";
import type { Version } from "../../versions/version_store.ts";
import type { AppCheck, CheckBounds } from "../../wire/messages.ts";
import type { CommitPublisher } from "../commit_publisher.ts";
import type { HostCode } from "../host_parts.ts";
import type { Companions, ServedApp } from "../leader_port.ts";
import type { IsolateStarter } from "../process/isolate.ts";
import type { ReaderPool } from "../readers/reader_pool.ts";
import type { Runners } from "../runners/runners.ts";
import type { MutationWriter, ReplaceResult } from "../writer/mutation_writer.ts";
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
  readonly news: CommitPublisher;
  readonly code: HostCode | undefined;
  readonly log: Log;
  /** The app, as described to other processes. */
  readonly app: () => ServedApp;
}

export class CodeSwaps {
  readonly #parts: CodeSwapsParts;
  /** Settles with the last swap. */
  #turn: Promise<unknown> = Promise.resolve();
  #companions: Companions | null = null;

  constructor(parts: CodeSwapsParts) {
    this.#parts = parts;
  }

  /** Other processes that read this database. */
  accompany(companions: Companions): void {
    this.#companions = companions;
  }

  /** See `IsolateHost.reload`. */
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

  /** See `IsolateHost.load`. */
  load(version: Version, options: LoadOptions = {}): Promise<ReplaceResult> {
    return this.oneByOne(() => this.#load(version, options));
  }

  /** See `IsolateHost.check`. */
  async check(version: Version, bounds: CheckBounds): Promise<AppCheck> {
    const started = await this.#parts.starter.check?.(version, bounds);
    if (started === undefined) throw new Error("These isolates cannot check another version");
    if (!started.ok) throw new BrokenVersionError(started.message);
    const { ready: { check } } = started.isolate;
    await started.isolate.close();
    if (check === undefined) throw new Error("An isolate returned no result of the check");
    return check;
  }

  /** See `IsolateHost.follow`. */
  follow(app: ServedApp | null): Promise<void> {
    return this.oneByOne(async () => {
      try {
        if (app !== null) await this.#follow(app);
      } finally {
        this.#parts.readers.release();
      }
      if (app !== null) this.#parts.news.reloaded();
    });
  }

  /** Swaps run one after another. */
  async oneByOne<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
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
    const { starter, writer, readers, runners, served, news, app } = this.#parts;
    let held = false;
    let refusal: { readonly error: unknown } | null = null;
    // The current code is served in the meantime.
    using _prepared = version === null ? null : await starter.prepare?.(version) ?? null;
    const result = await writer.replace(
      async (ready) => {
        // From now on lost isolates are replaced with the new code.
        if (version !== null) starter.use?.(version);
        served.declare(ready);
        await swapped?.();
        await readers.replace();
        runners.replace();
        if (version !== null) served.exchange(version);
      },
      {
        before: async () => {
          // Before the readers are paused, because it may run queries.
          await confirm?.().catch((error) => refusal = { error });
          if (refusal !== null) return;
          held = true;
          await Promise.all([readers.hold(), this.#companions?.hold()]);
        },
        start: async () =>
          refusal === null
            ? await starter.start("writer", version ?? undefined)
            : { ok: false, broken: false, message: "The load was refused" },
      },
    );
    // Otherwise they may be paused because the database is handed over.
    if (held) readers.release();
    if (held) this.#companions?.release(result.ok && version !== null ? app() : null);
    if (refusal !== null) throw (refusal as { readonly error: unknown }).error;
    if (!result.ok) return result;
    news.reloaded();
    if (version !== null) await this.serve(version);
    return result;
  }

  async #follow(app: ServedApp): Promise<void> {
    const { starter, served, readers, runners } = this.#parts;
    const version = await served.versions.get(app.version);
    await served.hold(version);
    starter.use?.(version);
    served.declare(app);
    await readers.replace();
    runners.replace();
  }
}
