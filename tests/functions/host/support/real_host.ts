/** A host with real isolates and a real database, in a temporary folder. */
import { steadyClock } from "../../../../mod/kit/clock.ts";
import { isolateCommand } from "../../../../mod/functions/host/process/command.ts";
import { IsolateHost } from "../../../../mod/functions/host/host.ts";
import { VersionStore } from "../../../../mod/functions/versions/version_store.ts";
import type { IsolateMemory } from "../../../../mod/functions/host/process/isolate_memory.ts";
import { ProcessStarter } from "../../../../mod/functions/host/process/process_starter.ts";
import type { Timeouts } from "../../../../mod/functions/host/outcomes.ts";
import type { RunObserver } from "../../../../mod/functions/host/run_observer.ts";
import type { QueryAnswer } from "../../../../mod/functions/host_port.ts";
import type { CommitEntry } from "../../../../mod/engine/types.ts";
import { killAll } from "../../../support/processes/process_tree.ts";
import { call, resultOf } from "./writer_world.ts";

export interface RealHostOptions {
  /** Factor by which the host's clock runs faster than the machine's: a timeout of 5 s passes in 5 s / hurry. */
  readonly hurry?: number;
  readonly env?: Record<string, string>;
  readonly observer?: RunObserver;
  readonly memory?: IsolateMemory;
  readonly timeouts?: Timeouts;
}

export class RealHost implements AsyncDisposable {
  readonly dir: string;
  readonly host: IsolateHost;
  /** All published commits. */
  readonly entries: CommitEntry[] = [];
  readonly logged: string[];
  #disposed = false;

  private constructor(dir: string, options: { readonly host: IsolateHost; readonly logged: string[] }) {
    this.dir = dir;
    this.host = options.host;
    this.logged = options.logged;
    this.host.onCommits((entries) => this.entries.push(...entries));
    this.host.serveQueries(async ({ udfPath, args }) => (await this.run(udfPath, args)).outcome);
  }

  /** Starts a host for an app of these files. Rejects, with the folder removed, when the app is broken. */
  static async start(files: Record<string, string>, options: RealHostOptions = {}): Promise<RealHost> {
    const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "syncline-host-" }));
    for (const folder of ["data", "functions"]) await Deno.mkdir(`${dir}/${folder}`);
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${dir}/functions/${name}`, text);
    }
    const logged: string[] = [];
    const { hurry = 1, env = {}, observer, memory, timeouts } = options;
    const log = (level: string, message: string, fields = {}) => {
      if (level !== "debug") logged.push(`${message} ${JSON.stringify(fields)}`);
    };
    const clock = {
      now: () => steadyClock.now() * hurry,
      after: (ms: number, run: () => void) => steadyClock.after(ms / hurry, run),
      every: (ms: number, run: () => void) => steadyClock.every(ms / hurry, run),
    };
    try {
      const versions = await VersionStore.open(`${dir}/data`);
      const source = { functionsDir: `${dir}/functions` };
      const version = await versions.make(source);
      const starter = await ProcessStarter.create({
        dataDir: `${dir}/data`,
        version,
        versions,
        env,
        settings: {},
        actionNet: [],
        command: (paths) => isolateCommand(paths),
        ...(memory && { isolateMemory: memory }),
        log,
        // Loading is slow on a busy machine, even with a faster clock.
        clock: steadyClock,
      });
      const batchPrefix = crypto.randomUUID();
      const host = new IsolateHost({
        starter,
        clock,
        log,
        batchPrefix,
        cores: 2,
        isolateStats: starter.isolateStats,
        ...(observer && { observer }),
        ...(timeouts && { timeouts }),
        code: { versions, version, source },
      });
      try {
        await host.begin();
      } catch (error) {
        await host[Symbol.asyncDispose]();
        throw error;
      }
      return new RealHost(dir, { host, logged });
    } catch (error) {
      await Deno.remove(dir, { recursive: true });
      throw error;
    }
  }

  async write(name: string, text: string): Promise<void> {
    await Deno.writeTextFile(`${this.dir}/functions/${name}`, text);
  }

  /** Runs one query as a separate batch. */
  run(udfPath: string, args: Record<string, unknown> = {}): Promise<QueryAnswer> {
    return new Promise((resolve) => {
      this.host.startQueryBatch([call(udfPath, args)], (_, answer) => resolve(answer));
    });
  }

  /** Result of a query, or what went wrong. */
  async query(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    return resultOf(await this.run(udfPath, args));
  }

  /** Result of a mutation, or what went wrong. */
  async mutate(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    return resultOf(await this.host.mutate(call(udfPath, args)));
  }

  /** Result of an action, or what went wrong. */
  async act(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    return resultOf({ outcome: await this.host.act(call(udfPath, args)) });
  }

  /** Ids of the isolates of a role that run now. */
  async pids(role: string): Promise<number[]> {
    const pattern = `${this.dir}/data/run-[^/]*/${role}-[0-9]+$`;
    const { stdout } = await new Deno.Command("pgrep", { args: ["-f", pattern] }).output();
    return new TextDecoder().decode(stdout).split("\n").filter(Boolean).map(Number);
  }

  /** Kills the isolates of a role that run now. Ignores one that has ended meanwhile. */
  async kill(role: string): Promise<void> {
    await killAll(await this.pids(role));
  }

  /** Ends the host, leaving the folder. */
  async stop(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.host[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Deno.remove(this.dir, { recursive: true });
  }
}
