/** Server processes of one cluster that tests can kill, freeze and restart. */
import { join } from "node:path";
import { Child } from "../../support/processes/child.ts";
import { FakeBucket } from "../../ops/scheduled/fake_bucket.ts";
import { bankApp } from "./bank_app.ts";
import { Gate } from "./gate.ts";
import { SECRET } from "./servers.ts";
import { freePort } from "../../support/ports.ts";

/** Connections of a server, which tests can cut. */
export interface Gates {
  /** From clients to it. */
  readonly clients: Gate;
  /** From the other servers to it. */
  readonly servers: Gate;
  /** From it to PostgreSQL. */
  readonly database: Gate;
}

interface ClusterProcessOptions {
  readonly name: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly port: number;
  readonly gates: Gates;
  /** Called with each log line about leadership. */
  readonly onLeadershipLog: (line: string) => void;
}

/** Log lines about leadership. */
const LEADERSHIP = /cluster|lead|lease|signal|stopp/i;

export class ClusterProcess {
  readonly #options: ClusterProcessOptions;
  #child: Child | null = null;
  /** URL for clients. */
  readonly url: string;
  /** URL that bypasses the gates. */
  readonly #direct: string;
  frozen = false;

  constructor(options: ClusterProcessOptions) {
    this.#options = options;
    this.url = `http://127.0.0.1:${options.gates.clients.port}`;
    this.#direct = `http://127.0.0.1:${options.port}`;
  }

  get name(): string {
    return this.#options.name;
  }

  get gates(): Gates {
    return this.#options.gates;
  }

  /** URL that is not affected by faults. */
  get directUrl(): string {
    return this.#direct;
  }

  /** The newest output. */
  last(): string {
    return this.#child?.lastOutput ?? "";
  }

  /** Token that creates the first administrator; `null` if none was printed. */
  get setupToken(): string | null {
    return /#[\w-]+=([\w-]+)/.exec(this.last())?.[1] ?? null;
  }

  get runs(): boolean {
    return this.#child !== null;
  }

  async start(): Promise<void> {
    const { name, args, env, onLeadershipLog } = this.#options;
    const onLine = (line: string) => LEADERSHIP.test(line) && onLeadershipLog(`${name}: ${line}`);
    const child = this.#child = new Child({ args, env, onLine });
    await child.line(/http:\/\/127\.0\.0\.1:\d+/);
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    try {
      Deno.kill(child.pid, signal);
      this.thaw(child.pid);
    } catch {
      // The process has already exited.
    }
    await child.exited;
    await child[Symbol.asyncDispose]();
  }

  freeze(): void {
    if (this.#child === null) return;
    this.frozen = true;
    Deno.kill(this.#child.pid, "SIGSTOP");
  }

  thaw(pid = this.#child?.pid): void {
    if (!this.frozen || pid === undefined) return;
    this.frozen = false;
    Deno.kill(pid, "SIGCONT");
  }

  /** Role in the cluster; `null` if the server does not answer. */
  async role(): Promise<"leader" | "follower" | null> {
    try {
      const response = await fetch(`${this.#direct}/api/health/ready`, {
        signal: AbortSignal.timeout(2_000),
      });
      return (await response.json()).cluster?.role ?? null;
    } catch {
      return null;
    }
  }
}

/** A cluster of processes with a bucket for its files. */
export class ProcessRig implements AsyncDisposable {
  readonly servers: readonly ClusterProcess[];
  readonly #folder: string;
  readonly #bucket: FakeBucket;

  private constructor(parts: { servers: readonly ClusterProcess[]; folder: string; bucket: FakeBucket }) {
    this.servers = parts.servers;
    this.#folder = parts.folder;
    this.#bucket = parts.bucket;
  }

  /** Starts servers with the bank app, with deployed code, or with the flags of `app`. */
  static async start(
    url: string,
    count: number,
    { deployed = false, app, onLeadershipLog = () => {} }: {
      readonly deployed?: boolean;
      readonly app?: readonly string[];
      readonly onLeadershipLog?: (line: string) => void;
    } = {},
  ): Promise<ProcessRig> {
    const folder = await Deno.makeTempDir({ prefix: "syncline-cluster-" });
    const bucket = new FakeBucket();
    const { endpoint } = bucket.location();
    await Deno.mkdir(join(folder, "functions"));
    for (const [name, text] of Object.entries(bankApp)) {
      await Deno.writeTextFile(join(folder, "functions", name), text);
    }
    const shared = {
      SYNCLINE_CLUSTER_SECRET: SECRET,
      SYNCLINE_CLUSTER_SNAPSHOTS: join(folder, "snapshots"),
      SYNCLINE_S3_ACCESS_KEY_ID: "id",
      SYNCLINE_S3_SECRET_ACCESS_KEY: "key",
      SYNCLINE_S3_ENDPOINT: endpoint ?? "",
    };
    const servers = Array.from({ length: count }, (_, at) => {
      const [port, linkPort] = [freePort(), freePort()];
      const database = new URL(url);
      const gates = {
        clients: new Gate(port),
        servers: new Gate(linkPort),
        database: new Gate(Number(database.port)),
      };
      database.port = String(gates.database.port);
      const env = {
        ...shared,
        SYNCLINE_CLUSTER: database.href,
        SYNCLINE_CLUSTER_ADDRESS: `127.0.0.1:${gates.servers.port}`,
        SYNCLINE_CLUSTER_LISTEN: `127.0.0.1:${linkPort}`,
      };
      const args = [
        ..."run --quiet --no-prompt -P=serve main.ts --storage s3://files".split(" "),
        ...[
          "--port",
          String(port),
          "--data",
          join(folder, `data-${at}`),
          ...app ?? (deployed ? [] : ["--functions", join(folder, "functions")]),
        ],
      ];
      return new ClusterProcess({ name: `server ${at + 1}`, args, env, port, gates, onLeadershipLog });
    });
    return new ProcessRig({ servers, folder, bucket });
  }

  /** Returns the server that reports itself as the leader. */
  async leader({ but }: { readonly but?: ClusterProcess } = {}): Promise<ClusterProcess | null> {
    for (const server of this.servers) {
      if (server !== but && server.runs && !server.frozen && await server.role() === "leader") return server;
    }
    return null;
  }

  /** Whether all servers answer and one of them leads. */
  async allServe(): Promise<boolean> {
    const roles = await Promise.all(this.servers.map((server) => server.role()));
    return roles.every((role) => role !== null) && roles.includes("leader");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.end("SIGKILL")));
    for (const { gates } of this.servers) {
      for (const gate of Object.values(gates)) await gate[Symbol.asyncDispose]();
    }
    await this.#bucket[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
