/**
 * Runs the whole suite: most files side by side, beside them those that need a process for themselves, then the long ones
 * that need quiet beside the types, and last those that need the machine. With arguments it is `deno test` with the suite's
 * permissions.
 */
import { readdirSync, readFileSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { installServices } from "./support/install_services.ts";
import { makeProgram } from "./support/program.ts";
import { isOf, together } from "./together.ts";

/** Files that compare how long things take, within one run: nothing stands beside them. */
const ALONE = [
  "tests/auth/timing_test.ts",
  "tests/client/browser/apply_speed_test.ts",
  "tests/hostile",
  "tests/scheduler/load_test.ts",
];

/** Files that wait for much of what they start: one row beside the other, each with its files one after the other. */
const IN_ROWS = [
  // It installs packages, starts servers and browsers, and says how long that takes.
  ["tests/npm/from_nothing_test.ts"],
  [
    // Three servers in processes of their own, which are killed and started again.
    "tests/cluster/faults_test.ts",
    "tests/client/browser/sleep_test.ts",
  ],
];

/**
 * Files that speak of our modules by their addresses, so that their isolates have the sources. They change the language
 * itself: each has a process.
 */
const OF_SOURCES = ["tests/functions/isolate"];

/** Files of which no other may be in their process, one after the other. */
const APART = [
  // They look for children of this process, and kill some: those of other files, too.
  "tests/functions/host/run_observer_test.ts",
  "tests/ops/maintenance_test.ts",
  "tests/storage/image_process_test.ts",
  "tests/storage/real_server_test.ts",
  // The working folder is of the whole process.
  "tests/server/config_test.ts",
];

/** What a file system in memory takes at most, and what has to be free for one. */
const MEMORY_FILES_MIB = 6 * 1024;
const MEMORY_FREE_MIB = 10 * 1024;

/** More than these failing at once is no accident of a busy machine. */
const TRIED_AGAIN_MAX = 5;

const repository = fileURLToPath(new URL("..", import.meta.url));

/** What a command begins with whose temporary files are in memory; `null`: they lie on the disk. */
const memoryFiles = await inMemory();

/** Environment variables with which tests find the services that were installed for them. */
const services = await installServices(say);

/** Files side by side: as many as there are processors, but a file may start a browser and several servers. */
const JOBS = String(Math.min(navigator.hardwareConcurrency, 4));

interface Surroundings {
  readonly stdout: "inherit" | "piped";
  readonly env?: Readonly<Record<string, string>>;
}

function command(args: readonly string[], { stdout, env = {} }: Surroundings): Deno.Command {
  const test = [Deno.execPath(), "test", "--no-prompt", "-P=test", ...args];
  const [program = "", ...rest] = [...memoryFiles?.start ?? [], ...test];
  return new Deno.Command(program, {
    args: rest,
    cwd: repository,
    env: {
      DENO_JOBS: Deno.env.get("DENO_JOBS") ?? JOBS,
      ...services,
      ...(memoryFiles !== null && { TMPDIR: memoryFiles.folder }),
      ...env,
    },
    stdin: "null",
    stdout,
  });
}

/**
 * Databases, versions and unpacked programs of thousands of tests are written to a disk only to be removed again. Where
 * the system lets us, each command has a file system in memory instead, which goes with the last of its processes.
 */
async function inMemory(): Promise<{ readonly folder: string; readonly start: readonly string[] } | null> {
  if (Deno.build.os !== "linux" || Deno.args.length > 0 || freeMiB() < MEMORY_FREE_MIB) return null;
  // Short: paths of sockets have to be.
  const folder = join(Deno.env.get("TMPDIR") ?? "/tmp", `s${Deno.pid}`);
  await Deno.mkdir(folder);
  const script = `mount -t tmpfs -o size=${MEMORY_FILES_MIB}m,mode=1777 tmpfs "$0" && exec "$@"`;
  const start = ["unshare", "--mount", "sh", "-c", script, folder];
  const [program = "", ...args] = [...start, "true"];
  const tried = await new Deno.Command(program, { args, stdout: "null", stderr: "null" }).output()
    .catch(() => null);
  if (tried?.success === true) return { folder, start };
  await Deno.remove(folder);
  return null;
}

/** Memory that may be used: what the machine has free, and no more than this process is allowed. */
function freeMiB(): number {
  const number = (path: string, pattern: RegExp, unit: number) => {
    try {
      const found = pattern.exec(readFileSync(path, "utf8"))?.[1];
      return found === undefined ? Infinity : Number(found) / unit;
    } catch {
      return Infinity;
    }
  };
  return Math.min(
    number("/proc/meminfo", /^MemAvailable: +(\d+) kB/m, 1024),
    number("/sys/fs/cgroup/memory.max", /^(\d+)$/m, 2 ** 20),
    number("/sys/fs/cgroup/memory/memory.limit_in_bytes", /^(\d+)$/m, 2 ** 20),
  );
}

/** Types of all test files, looked at once: what runs beside it goes first. */
async function check(files: readonly string[]): Promise<number> {
  const args = ["-n", "19", Deno.execPath(), "check", "--quiet", ...files];
  const child = new Deno.Command("nice", { args, cwd: repository, stdin: "null" }).spawn();
  return (await child.status).code;
}

async function test(args: readonly string[], env: Surroundings["env"] = {}): Promise<number> {
  return (await command(args, { stdout: "inherit", env }).spawn().status).code;
}

function say(text: string): void {
  writeSync(1, `${text}\n`);
}

/** Test files of the suite, below the repository. */
function testFiles(): string[] {
  const isTest = (name: string) => /(^|[._])test\.tsx?$/.test(name);
  return ["bench", "tests"].flatMap((top) =>
    readdirSync(join(repository, top), { recursive: true, encoding: "utf8" })
      .filter((path) => isTest(basename(path)))
      .map((path) => join(top, path))
  );
}

interface Run {
  readonly code: number;
  /** What failed: test files, or modules with several of them. */
  readonly failed: readonly string[];
  /** Where it did, in the list of failures: test files, or the module that broke off. */
  readonly places: readonly string[];
  /** What it was run with. */
  readonly args: readonly string[];
  readonly env: Surroundings["env"];
}

/**
 * Runs files, shows what they say, and names those that failed. A run that ends otherwise than with its totals has none:
 * nothing is known of it but its code.
 */
async function run(
  files: readonly string[],
  { args = [], env = {} }: { readonly args?: readonly string[]; readonly env?: Surroundings["env"] } = {},
): Promise<Run> {
  if (files.length === 0) return { code: 0, failed: [], places: [], args, env };
  const child = command(["--no-check", ...args, ...files], { stdout: "piped", env }).spawn();
  const [failed, places] = [new Set<string>(), new Set<string>()];
  let [file, ended] = ["", false];
  const look = (line: string) => {
    file = /^running \d+ tests? from (\S+)/.exec(line)?.[1] ?? file;
    ended ||= /^(ok|FAILED) \| /.test(line);
    const place = /^\S.* => (\S+):\d+:\d+$/.exec(line)?.[1] ?? /^(\S+) \(uncaught error\)$/.exec(line)?.[1];
    if (place !== undefined) places.add(place);
    if (!/ FAILED( \(.*\))?$/.test(line)) return;
    failed.add(/^(\S+) => /.exec(line)?.[1] ?? /^Uncaught error from (\S+) /.exec(line)?.[1] ?? file);
  };
  let rest = "";
  // Whole lines: another run writes its own between them.
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      say(line);
      look(stripVTControlCharacters(line));
    }
  }
  if (rest !== "") say(rest);
  const { code } = await child.status;
  return code !== 0 && ended
    ? { code, failed: [...failed], places: [...places], args, env }
    : { code, failed: [], places: [], args, env };
}

/** Runs files in the order of a list, each in a process of its own. */
async function oneByOne(files: readonly string[], list: readonly string[]): Promise<Run[]> {
  const runs = [];
  for (const path of list) runs.push(await run(files.filter((file) => isOf([path], file))));
  return runs;
}

/** What goes beside the files that share a process. */
async function beside(files: readonly string[]): Promise<Run[]> {
  const runs = await oneByOne(files, APART);
  return [...runs, await run(files.filter((file) => isOf(OF_SOURCES, file)))];
}

/** An import map with which what is started from within tests, too, is started from a program. Gives its path. */
async function programImports(program: string, folder: string): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(join(repository, "deno.json"))) as {
    readonly imports: Readonly<Record<string, string>>;
  };
  const root = pathToFileURL(repository);
  const map = new Map<string, string>();
  for (const [name, address] of Object.entries(imports)) {
    map.set(name, address.startsWith("./") ? new URL(address, root).href : address);
  }
  const place = "mod/kit/processes/program_root.ts";
  map.set(new URL(place, root).href, pathToFileURL(join(program, place)).href);
  const path = join(folder, "imports.json");
  await Deno.writeTextFile(path, JSON.stringify({ imports: Object.fromEntries(map) }));
  return path;
}

/** The files that share processes, with the servers that they start as they are shipped. */
async function shared(files: readonly string[], folder: string): Promise<Run> {
  const others = [...ALONE, ...IN_ROWS.flat(), ...APART, ...OF_SOURCES];
  const { apart, together: modules } = await together(
    files.filter((file) => !isOf(others, file)),
    { repository, folder },
  );
  // What waits and what measures has its servers from their sources, as they are started from a clone.
  const program = await makeProgram();
  const env = { SYNCLINE_TEST_PROGRAM: program };
  const args = ["--parallel", `--import-map=${await programImports(program, folder)}`];
  return await run([...apart, ...modules], { args, env });
}

/**
 * What failed is tried once more with the machine for itself, and named whatever comes of it: a suite of thousands of
 * tests with browsers and servers side by side is not to be lost to one of them, nor is that one to be forgotten.
 */
async function whole(folder: string): Promise<number> {
  const files = testFiles();
  // Also when something failed: all that does not work is told at once.
  const [first, ...besides] = await Promise.all([shared(files, folder), beside(files)]);
  const runs = [first, ...besides.flat()];
  const typed = check(files);
  runs.push(...(await Promise.all(IN_ROWS.map((row) => oneByOne(files, row)))).flat());
  const types = await typed;
  runs.push(await run(files.filter((file) => isOf(ALONE, file))));
  if (types !== 0) return 1;
  const failed = runs.flatMap((one) => one.failed);
  const unknown = runs.some(({ code, failed }) => code !== 0 && failed.length === 0);
  const places = new Set(runs.flatMap((one) => one.places));
  if (unknown || failed.length === 0 || Math.max(failed.length, places.size) > TRIED_AGAIN_MAX) {
    return runs.find(({ code }) => code !== 0)?.code ?? 0;
  }
  const named = [...places].join("\n  ");
  say(`\nFailed, and tried once more:\n  ${named}\n`);
  let again = 0;
  // With what it failed with.
  for (const { failed, args, env } of runs) {
    const others = args.filter((arg) => arg !== "--parallel");
    if (failed.length > 0) again ||= await test(["--no-check", ...others, ...failed], env);
  }
  if (again === 0) say(`\nUNSTEADY: failed first, passed alone:\n  ${named}\n`);
  return again;
}

/** With a folder for modules that are made for this run. */
async function withFolder(run: (folder: string) => Promise<number>): Promise<number> {
  const folder = await Deno.makeTempDir();
  try {
    return await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const code = Deno.args.length === 0 ? await withFolder(whole) : await test(Deno.args);
// What was in memory is gone, and the folder empty.
if (memoryFiles !== null) await Deno.remove(memoryFiles.folder);
Deno.exit(code);
