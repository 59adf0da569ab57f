/**
 * Runs the whole suite: most files side by side, then those that need the machine, or the process, for themselves. With
 * arguments it is `deno test` with the suite's permissions.
 */
import { readdirSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

/** Files that do not stand others beside them, each group with the reason. */
const ALONE = [
  // They compare how long things take, within one run.
  "tests/auth/timing_test.ts",
  "tests/client/browser/apply_speed_test.ts",
  "tests/client/browser/sleep_test.ts",
  "tests/hostile",
  "tests/scheduler/load_test.ts",
  // It installs packages, starts servers and a browser, and says how long that takes.
  "tests/npm/from_nothing_test.ts",
  // They look for children of this process, and kill some: those of other files, too.
  "tests/functions/host/run_observer_test.ts",
  "tests/ops/maintenance_test.ts",
  "tests/storage/image_process_test.ts",
  "tests/storage/real_server_test.ts",
  // Three servers in processes of their own, which are killed and started again.
  "tests/cluster/faults_test.ts",
  // The working folder is of the whole process.
  "tests/server/config_test.ts",
];

/** More than these failing at once is no accident of a busy machine. */
const TRIED_AGAIN_MAX = 5;

const repository = fileURLToPath(new URL("..", import.meta.url));

/** Files side by side: as many as there are processors, but a file may start a browser and several servers. */
const JOBS = String(Math.min(navigator.hardwareConcurrency, 4));

function command(args: readonly string[], stdout: "inherit" | "piped"): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-prompt", "-P=test", ...args],
    cwd: repository,
    env: { DENO_JOBS: Deno.env.get("DENO_JOBS") ?? JOBS },
    stdin: "null",
    stdout,
  });
}

/** Types of all test files, looked at once and beside those that run already. */
async function check(files: readonly string[]): Promise<number> {
  const args = ["check", "--quiet", ...files];
  const child = new Deno.Command(Deno.execPath(), { args, cwd: repository, stdin: "null" }).spawn();
  return (await child.status).code;
}

async function test(...args: string[]): Promise<number> {
  return (await command(args, "inherit").spawn().status).code;
}

function say(text: string): void {
  writeSync(1, `${text}\n`);
}

/** Test files of the suite, below the repository. */
function testFiles(): string[] {
  const isTest = (name: string) => /(^|[._])test\.tsx?$/.test(name);
  return readdirSync(join(repository, "tests"), { recursive: true, encoding: "utf8" })
    .filter((path) => isTest(basename(path)))
    .map((path) => join("tests", path));
}

const isAlone = (file: string): boolean => ALONE.some((path) => file === path || file.startsWith(`${path}/`));

/**
 * Runs files, shows what they say, and names those that failed. A run that ends otherwise than with its totals has none:
 * nothing is known of it but its code.
 */
async function run(files: readonly string[], ...args: string[]): Promise<{ code: number; failed: string[] }> {
  if (files.length === 0) return { code: 0, failed: [] };
  const child = command(["--no-check", ...args, ...files], "piped").spawn();
  const failed = new Set<string>();
  let [file, ended] = ["", false];
  const look = (line: string) => {
    file = /^running \d+ tests? from (\S+)/.exec(line)?.[1] ?? file;
    ended ||= /^(ok|FAILED) \| /.test(line);
    if (!/ FAILED( \(.*\))?$/.test(line)) return;
    failed.add(/^(\S+) => /.exec(line)?.[1] ?? /^Uncaught error from (\S+) /.exec(line)?.[1] ?? file);
  };
  let rest = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    writeSync(1, text);
    const lines = (rest + stripVTControlCharacters(text)).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(look);
  }
  const { code } = await child.status;
  return { code, failed: code !== 0 && ended ? [...failed] : [] };
}

/**
 * What failed is tried once more with the machine for itself, and named whatever comes of it: a suite of thousands of
 * tests with browsers and servers side by side is not to be lost to one of them, nor is that one to be forgotten.
 */
async function whole(): Promise<number> {
  const files = testFiles();
  const typed = check(files);
  const together = await run(files.filter((file) => !isAlone(file)), "--parallel");
  // Also when something failed: all that does not work is told at once.
  const alone = await run(files.filter(isAlone));
  const failed = [...together.failed, ...alone.failed];
  if (await typed !== 0) return 1;
  const unknown = [together, alone].some(({ code, failed }) => code !== 0 && failed.length === 0);
  if (unknown || failed.length === 0 || failed.length > TRIED_AGAIN_MAX) return together.code || alone.code;
  say(`\nFailed, and tried once more:\n  ${failed.join("\n  ")}\n`);
  const again = await test(...failed);
  if (again === 0) say(`\nUNSTEADY: failed first, passed alone:\n  ${failed.join("\n  ")}\n`);
  return again;
}

Deno.exit(Deno.args.length === 0 ? await whole() : await test(...Deno.args));
