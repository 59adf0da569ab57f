/**
 * The README's commands in a fresh clone with empty caches: with Deno, and with Node alone. It downloads all packages and
 * runs the complete test suite, so it is a separate task: `deno task test:long readme`.
 */
import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { lines } from "../support/processes/lines.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
/** Downloads included. */
const START_MS = 180_000;

interface Clone extends AsyncDisposable {
  readonly dir: string;
  /** An environment with empty caches; without Deno in its path when `nodeOnly`. */
  env(options: { readonly nodeOnly: boolean }): Promise<Record<string, string>>;
}

async function freshClone(): Promise<Clone> {
  const base = await Deno.makeTempDir();
  const dir = join(base, "clone");
  const { success } = await new Deno.Command("git", { args: ["clone", "--quiet", REPOSITORY, dir] }).output();
  assert.ok(success, "git clone");
  return {
    dir,
    async env({ nodeOnly }) {
      const home = join(base, nodeOnly ? "home-node" : "home-deno");
      await Deno.mkdir(home);
      const kept = ["NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"].flatMap((name) => {
        const value = Deno.env.get(name);
        return value === undefined ? [] : [[name, value]];
      });
      const path = Deno.env.get("PATH") ?? "";
      return {
        ...Object.fromEntries(kept),
        HOME: home,
        NO_COLOR: "1",
        PATH: nodeOnly ? await pathWithoutDeno(path, join(base, "bin")) : path,
      };
    },
    [Symbol.asyncDispose]: () => Deno.remove(base, { recursive: true }),
  };
}

/** Links to every program of the path but Deno, in one folder. */
async function pathWithoutDeno(path: string, bin: string): Promise<string> {
  await Deno.mkdir(bin);
  for (const folder of path.split(delimiter)) {
    try {
      for await (const entry of Deno.readDir(folder)) {
        if (entry.name === "deno") continue;
        // The first of two programs of one name is the one that the path would find.
        await Deno.symlink(join(folder, entry.name), join(bin, entry.name)).catch(() => {});
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return bin;
}

/** The commands of the README's first screen, as typed there. */
async function readmeCommands(): Promise<{ readonly command: string; readonly nodeOnly: boolean }[]> {
  const readme = await Deno.readTextFile(join(REPOSITORY, "README.md"));
  return [...readme.matchAll(/^(deno task (?:serve|test)|npx .* task (?:serve|test)) +# with (Deno|Node)/gm)]
    .map(([, command = "", runtime]) => ({ command, nodeOnly: runtime === "Node" }));
}

function shell(
  command: string,
  { dir, env }: { readonly dir: string; readonly env: Record<string, string> },
) {
  // A separate process group: npx does not forward signals, so the whole group is signaled, like by a terminal.
  return new Deno.Command("setsid", {
    args: ["sh", "-c", command],
    cwd: dir,
    env,
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

for (const { command, nodeOnly } of await readmeCommands()) {
  const wanted = command.endsWith("serve") ? serves : passes;
  Deno.test(`"${command}" works in a fresh clone with ${nodeOnly ? "only Node" : "Deno"}`, async () => {
    await using clone = await freshClone();
    await wanted(command, { dir: clone.dir, env: await clone.env({ nodeOnly }) });
  });
}

Deno.test("the README has both commands in both forms", async () => {
  assert.equal((await readmeCommands()).length, 4);
});

type Place = { readonly dir: string; readonly env: Record<string, string> };

async function passes(command: string, place: Place): Promise<void> {
  const { code, stdout, stderr } = await shell(command, place).output();
  const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.equal(code, 0, output.slice(-4000));
  assert.match(output, /ok \| \d+ passed/);
}

async function serves(command: string, place: Place): Promise<void> {
  const child = shell(`${command} --port 0`, place);
  const output: string[] = [];
  const found = Promise.withResolvers<string>();
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const line of lines(stream)) {
      output.push(line);
      const url = line.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
      if (url !== undefined) found.resolve(url);
    }
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  reading.then(() => found.reject(new Error("it ended")));
  const timer = setTimeout(() => found.reject(new Error(`no address after ${START_MS} ms`)), START_MS);
  try {
    const url = await found.promise.catch((error) => {
      throw new Error(`${error.message}; output:\n${output.join("\n")}`);
    });
    assert.match(await (await fetch(`${url}/`)).text(), /<!doctype html/i);
    assert.equal((await (await fetch(`${url}/api/health`)).json()).status, "ok");
    await signalGroup(child.pid, "INT");
    await child.status;
    // npx ends before its child, so wait for the end of the server's output.
    await reading;
    await assert.rejects(fetch(`${url}/api/health`), "the server is gone");
  } finally {
    clearTimeout(timer);
    await signalGroup(child.pid, "KILL");
    await child.status;
    await reading;
  }
}

async function signalGroup(leader: number, signal: string): Promise<void> {
  await new Deno.Command("kill", { args: [`-${signal}`, "--", `-${leader}`], stderr: "null" }).output();
}
