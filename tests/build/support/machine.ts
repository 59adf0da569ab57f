/** A machine that has no Deno, as far as a program can see, and an app on it. */
import { fileURLToPath } from "node:url";
import { anyRunning } from "../../support/processes/process_tree.ts";
import { until } from "../../support/waiting.ts";

export const projectDir: string = fileURLToPath(new URL("../../../", import.meta.url));
/** Programs needed to unpack, and those of the server. Deno is not among them. */
const PROGRAMS = [
  "sh",
  "tail",
  "gzip",
  "tar",
  "mktemp",
  "mv",
  "rm",
  "mkdir",
  "setpriv",
  "nice",
  "true",
  "find",
  "ln",
  "ls",
  "tr",
  "cut",
  "sort",
  "cksum",
  "cat",
  "touch",
  "ps",
];
/** Unpacking and starting, on a busy machine. */

const FUNCTIONS = `
  import { untypedMutation, untypedQuery } from "syncline/server";
  import { shout } from "shout";
  import { z } from "zod";
  export const add = untypedMutation({
    args: { text: z.string() },
    handler: (ctx, { text }) => ctx.db.insert("notes", { text: shout(text) }),
  });
  export const list = untypedQuery(async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text));
  export const upload = untypedMutation((ctx) => ctx.storage.generateUploadUrl());
`;
const SCHEMA = `
  import { defineSchema, defineTable } from "syncline/server";
  import { z } from "zod";
  export default defineSchema({ notes: defineTable({ text: z.string() }) });
`;

export interface Run {
  readonly process: Deno.ChildProcess;
  /** Its output so far. */
  readonly output: { text: string };
  /** Resolves when all output has been read. */
  readonly outputEnds: Promise<unknown>;
}

/** A folder with a home, a path without Deno, and an app. */
export class Machine implements AsyncDisposable {
  readonly dir: string;
  /** Started processes that may still run. */
  readonly #running = new Set<Deno.ChildProcess>();

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async make(): Promise<Machine> {
    const machine = new Machine(await Deno.realPath(await Deno.makeTempDir()));
    const { dir } = machine;
    for (const folder of ["bin", "home", "app/functions", "app/node_modules/shout"]) {
      await Deno.mkdir(`${dir}/${folder}`, { recursive: true });
    }
    for (const name of PROGRAMS) {
      const found = await new Deno.Command("sh", { args: ["-c", `command -v ${name}`] }).output();
      const path = new TextDecoder().decode(found.stdout).trim();
      if (path.startsWith("/")) await Deno.symlink(path, `${dir}/bin/${name}`);
    }
    await Deno.writeTextFile(`${dir}/app/functions/notes.ts`, FUNCTIONS);
    await Deno.writeTextFile(`${dir}/app/functions/schema.ts`, SCHEMA);
    await Deno.writeTextFile(
      `${dir}/app/node_modules/shout/index.js`,
      `exports.shout = (text) => text.toUpperCase();`,
    );
    return machine;
  }

  /** `command`: the program, by its path, and its arguments. Starts it from the app's folder. */
  start(command: readonly string[], env: Record<string, string> = {}): Run {
    const process = new Deno.Command("/bin/sh", {
      // The shell opens a script like the kernel does, and the script reads itself by that path.
      args: ["-c", 'exec "$0" "$@"', ...command],
      cwd: `${this.dir}/app`,
      clearEnv: true,
      env: { PATH: `${this.dir}/bin`, HOME: `${this.dir}/home`, ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#running.add(process);
    process.status.then(() => this.#running.delete(process));
    const output = { text: "" };
    const read = [process.stdout, process.stderr].map(async (stream) => {
      for await (const part of stream.pipeThrough(new TextDecoderStream())) output.text += part;
    });
    return { process, output, outputEnds: Promise.all(read) };
  }

  async run(command: readonly string[], env: Record<string, string> = {}) {
    const { process, output, outputEnds } = this.start(command, env);
    const { code } = await process.status;
    await outputEnds;
    return { code, output: output.text };
  }

  /** Starts `serve` on a free port. Also returns its address. */
  async serve(command: readonly string[], env: Record<string, string> = {}): Promise<Run & { url: string }> {
    const run = this.start([...command, "serve", "--port", "0"], env);
    let url: string | undefined;
    await until(() => {
      if (!this.#running.has(run.process)) throw new Error(`The server ended: ${run.output.text}`);
      url = /http:\/\/127\.0\.0\.1:\d+/.exec(run.output.text)?.[0];
      return url !== undefined;
    }, { what: () => run.output.text, everyMs: 50 });
    return { ...run, url: url ?? "" };
  }

  /** Folders in the cache. */
  async unpacked(home = "home"): Promise<string[]> {
    return (await Array.fromAsync(Deno.readDir(`${this.dir}/${home}/.cache/syncline`))).map(({ name }) =>
      name
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Only after a failure is there one.
    await Promise.all([...this.#running].map((process) => {
      process.kill("SIGTERM");
      return process.status;
    }));
    await Deno.remove(this.dir, { recursive: true });
  }
}

export async function call(url: string, kind: string, path: string, args: Record<string, unknown> = {}) {
  const response = await fetch(`${url}/api/${kind}`, {
    method: "POST",
    body: JSON.stringify({ path, args }),
  });
  return (await response.json()).value;
}

/** Waits until none of these processes runs. */
export async function untilEnded(pids: readonly number[]): Promise<void> {
  await until(async () => !await anyRunning(pids), { what: `none of ${pids} runs`, everyMs: 50 });
}
