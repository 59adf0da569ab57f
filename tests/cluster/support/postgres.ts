/**
 * A real PostgreSQL for tests, with a separate folder and port. Tests that start one `need` it, see
 * `tests/support/services.ts`.
 */
import { join } from "node:path";
// @ts-types="../../../mod/cluster/postgres/driver.d.ts"
import pg from "pg";
import type { Client } from "../../../mod/cluster/postgres/driver.d.ts";
import { pathOf, postgres } from "../../support/services.ts";
import { until } from "../../support/waiting.ts";
import { freePort } from "../../support/ports.ts";

/** Ids of the user nobody, because the programs refuse to run as root. */
const UNPRIVILEGED_ID = 65_534;
const decoder = new TextDecoder();

interface Location {
  /** Folder of the programs of PostgreSQL. */
  readonly programs: string;
  /** Working directory. */
  readonly folder: string;
}

/** A program of PostgreSQL or the system, which runs as an unprivileged user. */
function commandOf(
  [program, ...args]: readonly [string, ...string[]],
  { programs, folder }: Location,
): Deno.Command {
  return new Deno.Command(program === "cp" ? program : join(programs, program), {
    args,
    cwd: folder,
    clearEnv: true,
    env: { LC_ALL: "C", PATH: `${programs}:/usr/bin:/bin` },
    ...(Deno.uid() === 0 ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {}),
    stdin: "null",
    stdout: "null",
    stderr: program === "pg_ctl" ? "null" : "piped",
  });
}

/** Runs a program of PostgreSQL or the system. Returns its exit code and error output. */
async function output(
  [program, ...args]: readonly [string, ...string[]],
  { programs, folder }: Location,
): Promise<{ readonly code: number; readonly stderr: string | null }> {
  const command = commandOf([program, ...args], { programs, folder });
  // Without a pipe: the server that pg_ctl starts would keep it open.
  if (program === "pg_ctl") return { code: (await command.spawn().status).code, stderr: null };
  const { code, stderr } = await command.output();
  return { code, stderr: decoder.decode(stderr) };
}

/** A folder that belongs to the user of the server. */
async function ownFolder(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "syncline-postgres-" });
  if (Deno.uid() === 0) await Deno.chown(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  await Deno.chmod(folder, 0o711);
  return folder;
}

let made: Promise<string> | null = null;

/** Files of a server without databases. Created once per process, because it takes longer than a start. */
function emptyFiles(programs: string): Promise<string> {
  return made ??= (async () => {
    const folder = await ownFolder();
    addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
    const files = join(folder, "data");
    const options = ["-U", "app", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"];
    const { code, stderr } = await output(["initdb", "-D", files, ...options], { programs, folder });
    if (code !== 0) throw new Error(`initdb ended with ${code}: ${stderr}`);
    return files;
  })();
}

let sharedServer: Promise<TestPostgres> | null = null;

export class TestPostgres implements AsyncDisposable {
  readonly #folder: string;
  readonly #programs: string;
  readonly port: number;
  #databases = 0;

  private constructor(parts: { readonly folder: string; readonly programs: string; readonly port: number }) {
    this.#folder = parts.folder;
    this.#programs = parts.programs;
    this.port = parts.port;
  }

  static async start(): Promise<TestPostgres> {
    const programs = pathOf(postgres);
    const folder = await ownFolder();
    const empty = await emptyFiles(programs);
    for (let tries = 0;; tries++) {
      const started = new TestPostgres({ folder, programs, port: freePort() });
      try {
        if (tries === 0) await started.#run("cp", "-R", "-p", empty, join(folder, "data"));
        await started.up();
        return started;
      } catch (error) {
        // Another process may have taken the port.
        if (tries === 3) throw error;
      }
    }
  }

  /**
   * Returns the server that the tests of this process share, each with its own databases. Tests that stop their server `start`
   * one. The caller must not dispose it: it ends with the process.
   */
  static shared(): Promise<TestPostgres> {
    return sharedServer ??= (async () => {
      const started = await TestPostgres.start();
      addEventListener("unload", () => started.#end());
      return started;
    })();
  }

  /** Returns the URL of a new database. */
  async database({ encoding = "UTF8" }: { readonly encoding?: string } = {}): Promise<string> {
    const name = `test_${++this.#databases}`;
    const client = await this.client("postgres");
    await client.query(`create database ${name} encoding '${encoding}' template template0`);
    await client.end();
    return this.url(name);
  }

  url(name: string, user = "app"): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${name}`;
  }

  /** Opens a connection to a database for inspection. The caller must close it. */
  async client(database: string): Promise<Client> {
    const client = new pg.Client({ host: "127.0.0.1", port: this.port, user: "app", database });
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  async up(): Promise<void> {
    const options =
      `-k ${this.#folder} -c listen_addresses=127.0.0.1 -c port=${this.port} -c max_connections=60`;
    await this.#run(
      "pg_ctl",
      "-D",
      join(this.#folder, "data"),
      "-w",
      "-l",
      join(this.#folder, "log"),
      "-o",
      options,
      "start",
    );
  }

  async down(mode: "fast" | "immediate" = "fast"): Promise<void> {
    await this.#run("pg_ctl", "-D", join(this.#folder, "data"), "-w", "-m", mode, "stop");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down("immediate").catch(() => {});
    // It may still be writing.
    await until(() => Deno.remove(this.#folder, { recursive: true }).then(() => true, () => false));
  }

  /** Stops the server while the process ends, when promises no longer resolve. */
  #end(): void {
    const stop = ["pg_ctl", "-D", join(this.#folder, "data"), "-w", "-m", "immediate", "stop"] as const;
    commandOf(stop, { programs: this.#programs, folder: this.#folder }).outputSync();
    Deno.removeSync(this.#folder, { recursive: true });
  }

  async #run(program: string, ...args: string[]): Promise<void> {
    const { code, stderr } = await output([program, ...args], {
      programs: this.#programs,
      folder: this.#folder,
    });
    if (code === 0) return;
    const logged = stderr ?? await Deno.readTextFile(join(this.#folder, "log")).catch(() => "");
    throw new Error(`${program} ${args.at(-1)} ended with ${code}: ${logged}`);
  }
}
