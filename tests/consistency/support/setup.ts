/** Server processes of one app, reached through a proxy, and the faults that can happen to them. */
import { join } from "node:path";
import { type FaultName, FAULTS } from "../../cluster/support/faults.ts";
import { Gate } from "../../cluster/support/gate.ts";
import { TestPostgres } from "../../cluster/support/postgres.ts";
import { workersOf } from "../../cluster/support/processes.ts";
import { ProcessRig } from "../../cluster/support/server_processes.ts";
import { projectDir } from "../../support/processes/child.ts";
import { killAll, processTree, resume, suspend, writerOf } from "../../support/processes/process_tree.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { freePort } from "../../support/ports.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { found, pause, until } from "../../support/waiting.ts";

const FUNCTIONS = "tests/consistency/functions";
const FREEZE_MS_MAX = 3_000;
const TAKEOVER_MS_MAX = 2_500;
const REPAIR_MS_MAX = 4_000;

/** An address of the app. Several processes may share it. */
export interface Machine {
  readonly name: string;
  readonly port: number;
}

export interface Setup extends AsyncDisposable {
  readonly machines: readonly Machine[];
  readonly faults: readonly string[];
  /** Injects a fault. Resolves when all processes serve again. `pick` returns a random integer below its argument. */
  inflict(fault: string, pick: (below: number) => number): Promise<void>;
  /** The newest output of the servers. */
  lastOutput(): string;
}

type LocalFault = (setup: LocalSetup, pick: (below: number) => number) => Promise<void>;

const LOCAL_FAULTS: Readonly<Record<string, LocalFault>> = {
  cut: (setup) => Promise.resolve(setup.gate.breakOff()),
  kill: (setup) => setup.restart((server) => server.kill()),
  "kill-all": (setup) =>
    setup.restart(async (server) => {
      await killAll(await processTree(server.pid));
      await server.kill();
    }),
  "kill-writer": async ({ server }) => await killAll([await currentWriter(server)]),
  stop: (setup) => setup.restart(async (server) => void await server.stop()),
  freeze: ({ server }, pick) => freeze(server.pid, pick(FREEZE_MS_MAX)),
  "freeze-writer": async ({ server }, pick) => await freeze(await currentWriter(server), pick(FREEZE_MS_MAX)),
};

const TAKEOVER_FAULTS: Readonly<Record<string, LocalFault>> = {
  takeover: (setup) => setup.takeOver(() => Promise.resolve()),
  "takeover-freeze": (setup, pick) =>
    setup.takeOver(async (old) => {
      await pause(pick(TAKEOVER_MS_MAX));
      await freeze(old.pid, pick(FREEZE_MS_MAX));
    }),
  "takeover-kill": (setup, pick) =>
    setup.takeOver(async (old) => {
      await pause(pick(TAKEOVER_MS_MAX));
      await old.kill();
    }),
};

const WORKER_FAULTS: Readonly<Record<string, LocalFault>> = {
  "kill-worker": async ({ server }, pick) => {
    const workers = await workersOf(server.pid);
    await killAll(workers.slice(pick(workers.length)).slice(0, 1));
  },
  "freeze-worker": async ({ server }, pick) => {
    const workers = await workersOf(server.pid);
    const worker = workers[pick(workers.length)];
    if (worker !== undefined) await freeze(worker, pick(FREEZE_MS_MAX));
  },
};

/** Id of the writer. After an earlier fault it may still be starting. */
async function currentWriter({ pid }: ServerProcess): Promise<number> {
  return await found(() => writerOf(pid).catch(() => null), { what: "the server has a writer" });
}

async function freeze(pid: number, ms: number): Promise<void> {
  await suspend(pid);
  await pause(ms);
  await resume(pid);
}

/** One server, with or without further worker processes. */
export class LocalSetup implements Setup {
  readonly machines: readonly Machine[];
  readonly gate: Gate;
  readonly #folder = new TempFolder();
  readonly #port: number;
  readonly #flags: readonly string[];
  readonly #faults: Readonly<Record<string, LocalFault>>;
  #server: ServerProcess | null = null;

  private constructor(workers: number) {
    this.#port = freePort();
    this.gate = new Gate(this.#port);
    this.machines = [{ name: "the server", port: this.gate.port }];
    this.#flags = workers > 1 ? ["--workers", String(workers)] : [];
    this.#faults = { ...LOCAL_FAULTS, ...workers > 1 ? WORKER_FAULTS : TAKEOVER_FAULTS };
  }

  static async start(workers = 1): Promise<LocalSetup> {
    await using started = new AsyncDisposableStack();
    const setup = started.use(new LocalSetup(workers));
    setup.#server = await setup.#start();
    started.move();
    return setup;
  }

  get faults(): readonly string[] {
    return Object.keys(this.#faults);
  }

  get server(): ServerProcess {
    if (this.#server === null) throw new Error("No server runs");
    return this.#server;
  }

  async inflict(fault: string, pick: (below: number) => number): Promise<void> {
    await this.#faults[fault]?.(this, pick);
    await until(() => serves(this.#port), { what: `the server serves after ${fault}` });
  }

  lastOutput(): string {
    return this.#server?.lastOutput ?? "";
  }

  async restart(end: (server: ServerProcess) => Promise<void>): Promise<void> {
    await end(this.server);
    this.#server = await this.#start();
  }

  /** Starts a process that takes over from the current one while that one is disturbed. */
  async takeOver(disturb: (old: ServerProcess) => Promise<void>): Promise<void> {
    const old = this.server;
    const [next] = await Promise.all([this.#start("--takeover").catch(() => null), disturb(old)]);
    if (next !== null) await old.exited;
    await old[Symbol.asyncDispose]();
    this.#server = next ?? await this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    await this.gate[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
  }

  #start(...flags: readonly string[]): Promise<ServerProcess> {
    return ServerProcess.start({
      dataDir: this.#folder.path,
      functions: FUNCTIONS,
      port: this.#port,
      flags: [...this.#flags, ...flags],
    });
  }
}

async function serves(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/api/health/ready`, {
      headers: { connection: "close" },
      signal: AbortSignal.timeout(2_000),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** Three servers over PostgreSQL. */
export class ClusterSetup implements Setup {
  readonly machines: readonly Machine[];
  readonly faults: readonly string[] = [...Object.keys(FAULTS), "cut", "freeze-follower"];
  readonly #postgres: TestPostgres;
  readonly #rig: ProcessRig;

  private constructor(postgres: TestPostgres, rig: ProcessRig) {
    this.#postgres = postgres;
    this.#rig = rig;
    this.machines = rig.servers.map(({ name, gates }) => ({ name, port: gates.clients.port }));
  }

  static async start(): Promise<ClusterSetup> {
    await using started = new AsyncDisposableStack();
    const postgres = started.use(await TestPostgres.start());
    const app = ["--functions", join(projectDir, FUNCTIONS)];
    const rig = started.use(await ProcessRig.start(await postgres.database(), 3, { app }));
    const [first, ...others] = rig.servers;
    await first?.start();
    await Promise.all(others.map((server) => server.start()));
    const setup = new ClusterSetup(postgres, rig);
    started.move();
    return setup;
  }

  async inflict(fault: string, pick: (below: number) => number): Promise<void> {
    const rig = this.#rig;
    const leader = await found(() => rig.leader(), { what: "a server leads" });
    const others = rig.servers.filter((server) => server !== leader);
    const follower = others[pick(others.length)] ?? leader;
    if (fault === "cut") rig.servers[pick(rig.servers.length)]?.gates.clients.breakOff();
    else if (fault === "freeze-follower") {
      follower.freeze();
      await pause(pick(FREEZE_MS_MAX));
      follower.thaw();
    } else {
      const clients = { cutOff: () => {}, reaches: () => {} };
      const scene = { rig, postgres: this.#postgres, clients, leader, pick, note: () => {} };
      const repair = await FAULTS[fault as FaultName].inflict(scene);
      await pause(pick(REPAIR_MS_MAX));
      await repair();
    }
    await until(() => rig.allServe(), { what: `all servers serve after ${fault}` });
  }

  lastOutput(): string {
    return this.#rig.servers.map((server) => `${server.name}:\n${server.last()}`).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rig[Symbol.asyncDispose]();
    await this.#postgres[Symbol.asyncDispose]();
  }
}
