/**
 * A scheduler on the real engine in the test's process, with a clock moved by the test. It can be restarted as after a crash,
 * calls can be made to fail, and actions can be blocked.
 */
import type { CommitEntry } from "../../../mod/engine/types.ts";
import type { CronJobs } from "../../../mod/functions/api/cron_jobs.ts";
import type { FunctionCall } from "../../../mod/functions/host_port.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { assembleApp } from "../../../mod/functions/isolate/app/loader.ts";
import { type MainAction, MainActions } from "../../../mod/functions/main_actions.ts";
import type { CallError, Outcome } from "../../../mod/functions/outcome.ts";
import { schedulerModules } from "../../../mod/scheduler/isolate_functions/mod.ts";
import { type Cron, Scheduler, type SchedulerPort } from "../../../mod/scheduler/mod.ts";
import { cleanupActions } from "../../../mod/scheduler/mod.ts";
import { Hub, noAccounts } from "../../../mod/sync/mod.ts";
import { TestClock } from "../../../mod/testing/clock.ts";
import { InProcessHost } from "../../../mod/testing/in_process_host.ts";
import { appModules, Holds } from "./app.ts";

export interface WorldOptions {
  readonly jobsKnownMax?: number;
  readonly crons?: CronJobs;
  readonly serviceCrons?: readonly Cron[];
  /** Creates additional main process actions for each start of the server. */
  readonly actions?: (clock: TestClock) => ReadonlyMap<string, MainAction>;
  readonly startsAt?: number;
  /** Check interval of a clock that may be set. */
  readonly lookMs?: number;
}

/** Result of a call that is not executed. */
export type Fault = Pick<CallError, "message" | "retryable">;

const START = Date.UTC(2030, 0, 1);
const TURNS_MAX = 20_000;

export class World implements AsyncDisposable {
  readonly clock: TestClock;
  readonly holds: Holds = new Holds();
  readonly logged: string[] = [];
  /** Stack traces of these. */
  readonly stacks: string[] = [];
  /** Entries of all commits since the start. */
  readonly entries: CommitEntry[] = [];
  /** Intercepts each call of the scheduler. `null` lets it continue. */
  fault: (call: FunctionCall) => Fault | null = () => null;
  /** Cron jobs of the app, read again by a reload. */
  crons: CronJobs | undefined;
  readonly #folder: string;
  readonly #options: WorldOptions;
  #host: InProcessHost;
  #hub: Hub;
  #scheduler: Scheduler;

  private constructor(folder: string, options: WorldOptions) {
    this.#folder = folder;
    this.#options = options;
    this.crons = options.crons;
    this.clock = new TestClock(options.startsAt ?? START);
    [this.#host, this.#hub, this.#scheduler] = this.#build();
  }

  static async open(options: WorldOptions = {}): Promise<World> {
    const world = new World(await Deno.makeTempDir({ prefix: "syncline-scheduler-" }), options);
    await world.#scheduler.start();
    await world.quiet();
    return world;
  }

  get scheduler(): Scheduler {
    return this.#scheduler;
  }

  /** Crashes the server and restarts it `downMs` later. */
  async restart({ downMs = 0 }: { readonly downMs?: number } = {}): Promise<void> {
    const [host, hub, scheduler] = [this.#host, this.#hub, this.#scheduler];
    host[Symbol.dispose]();
    this.clock.moveTo(this.clock.now() + downMs);
    [this.#host, this.#hub, this.#scheduler] = this.#build();
    // The database of the old one is closed, so its remaining work fails.
    this.holds.releaseAll();
    await scheduler[Symbol.asyncDispose]();
    await hub.shutdown();
    await this.#scheduler.start();
    await this.quiet();
  }

  async query(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    return value(await this.#hub.query({ udfPath, args, identity: anonymous, origin: "client" }));
  }

  async mutate(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    const { outcome } = await this.#host.mutate({ udfPath, args, identity: anonymous, origin: "client" });
    return value(outcome);
  }

  async act(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    return value(await this.#host.act({ udfPath, args, identity: anonymous, origin: "client" }));
  }

  /** Calls a system function. */
  async system(udfPath: string, args: Record<string, unknown> = {}): Promise<unknown> {
    const { outcome } = await this.#host.mutate({ udfPath, args, identity: anonymous, origin: "system" });
    return value(outcome);
  }

  /** Moves the clock, stopping at each due time. */
  async advance(ms: number): Promise<void> {
    const end = this.clock.now() + ms;
    await this.quiet();
    for (let next = this.clock.nextAt; next !== null && next <= end; next = this.clock.nextAt) {
      this.clock.moveTo(next);
      await this.quiet();
    }
    this.clock.moveTo(end);
    await this.quiet();
  }

  /** Resolves when only blocked actions run and nothing is due. */
  async quiet(): Promise<void> {
    let calm = 0;
    for (let turn = 0; calm < 3; turn++) {
      if (turn > TURNS_MAX) throw new Error("There is no end to what runs");
      await new Promise((resolve) => setTimeout(resolve, 0));
      const idle = this.#host.callsInFlight === this.holds.held && !this.#hub.busy;
      if ((this.clock.nextAt ?? Infinity) <= this.clock.now()) this.clock.moveTo(this.clock.now());
      else if (idle) calm++;
      else calm = 0;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.holds.releaseAll();
    await this.#scheduler[Symbol.asyncDispose]();
    await this.#hub.shutdown();
    await this.quiet();
    this.#host[Symbol.dispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  #build(): [InProcessHost, Hub, Scheduler] {
    const { serviceCrons, actions, jobsKnownMax, lookMs = Infinity } = this.#options;
    const load = () =>
      assembleApp(appModules(this.holds, this.crons), { systemModules: schedulerModules, named: [] });
    const now = () => this.clock.now();
    const host = new InProcessHost({
      app: load(),
      functionsUrl: "",
      databasePath: `${this.#folder}/data.db`,
      now,
      env: {},
    });
    const port: SchedulerPort = {
      mutate: async (call) => {
        const fault = this.fault(call);
        if (fault !== null) return { outcome: failure(fault), ts: host.ts, replayed: false };
        return await host.mutate(call);
      },
      query: async (call) => {
        const fault = this.fault(call);
        return fault === null ? await hub.query(call) : failure(fault);
      },
      act: async (call) => {
        const fault = this.fault(call);
        return fault === null ? await (mainActions.run(call) ?? host.act(call)) : failure(fault);
      },
    };
    const mainActions = new MainActions(
      new Map([...cleanupActions({ port, now }), ...actions?.(this.clock) ?? []]),
    );
    const hub = new Hub({ host, authenticator: noAccounts, dev: true });
    host.serveQueries((call) => hub.query(call));
    const scheduler = new Scheduler({
      port,
      appCrons: () => load().crons,
      clock: this.clock,
      clockCheckMs: lookMs,
      log: (level, message, fields) => {
        const reason = fields?.["error"] ?? fields?.["reason"] ?? "";
        this.logged.push(`${level} ${message} ${reason}`.trim());
        if (fields?.["stack"] !== undefined) this.stacks.push(String(fields["stack"]));
      },
      ...(serviceCrons === undefined ? {} : { serviceCrons }),
      ...(jobsKnownMax === undefined ? {} : { jobsKnownMax }),
    });
    host.onCommits((entries) => {
      this.entries.push(...entries);
      scheduler.applyCommits(entries);
    });
    return [host, hub, scheduler];
  }
}

function failure({ message, retryable }: Fault): Outcome {
  const error = { kind: "internal", message, data: null, ...(retryable && { retryable }) } as const;
  return { ok: false, error, logLines: [] };
}

function value(outcome: Outcome): unknown {
  if (!outcome.ok) throw new Error(outcome.error.message);
  return JSON.parse(outcome.value);
}
