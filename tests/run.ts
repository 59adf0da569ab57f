/**
 * Runs all tests: `deno task test`. Installs the services they need, bundles the server, and runs test files in parallel
 * processes (`plan.ts`). The last line of output is `N passed, N failed[, N skipped]`. With arguments it is `deno test` with
 * the permissions of the suite.
 */
import { readdirSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Job, planJobs } from "./plan.ts";
import { CpuClock, seconds } from "./support/cpu_clock.ts";
import { installServices } from "./support/install_services.ts";
import { makeProgram } from "./support/program.ts";
import { swift } from "./support/services.ts";
import { SwiftServer } from "./storage/support/swift_server.ts";

/** Size of the file system in memory, and how much memory must be free to create one and for one more job. */
const TMPFS_MIB = 6 * 1024;
const FREE_MEMORY_MIB_MIN = 10 * 1024;
/** Set in the process that runs inside the file system in memory. */
const INSIDE_TMPFS = "SYNCLINE_TEST_TMPFS";

/** A job that takes longer has failed. */
const JOB_MS_MAX = 40 * 60_000;
/** Jobs listed with their times at the end. */
const SLOWEST_SHOWN = 10;

const repository = fileURLToPath(new URL("..", import.meta.url));

/** More than there are processors, because tests also wait for timers and processes. */
const PARALLEL = Number(
  Deno.env.get("SYNCLINE_TEST_JOBS") ??
    Math.min(navigator.hardwareConcurrency, 4) + (freeMemoryMiB() < FREE_MEMORY_MIB_MIN ? 1 : 2),
);

function print(text: string): void {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let at = 0; at < bytes.length;) at += writeSync(1, bytes.subarray(at));
}

/** Test files, relative to the repository. */
function testFiles(): string[] {
  const isTest = (name: string) => /(^|[._])test\.tsx?$/.test(name);
  return ["bench", "tests"].flatMap((top) =>
    readdirSync(join(repository, top), { recursive: true, encoding: "utf8" })
      .filter((path) => isTest(basename(path)))
      .map((path) => join(top, path))
  );
}

interface Outcome {
  readonly job: Job;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Lines that name what failed. */
  readonly failures: readonly string[];
  /** Lines that name skipped tests. */
  readonly skips: readonly string[];
  readonly wallMs: number;
  readonly cpuMs: number;
}

interface Environment {
  readonly env: Readonly<Record<string, string>>;
  /** Import map with which isolates start from the bundled program. */
  readonly importMap: string;
  readonly program: string;
  readonly clock: CpuClock;
}

/** Runs the tests of a job and prints their output when they have ended. */
async function runJob(job: Job, { env, importMap, program, clock }: Environment): Promise<Outcome> {
  const startedAt = performance.now();
  const bundled = job.fromSources ? [] : [`--import-map=${importMap}`];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-prompt", "--quiet", "-P=test", "--no-check", ...bundled, job.module],
    cwd: repository,
    env: { NO_COLOR: "1", ...env, ...(!job.fromSources && { SYNCLINE_TEST_PROGRAM: program }) },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), JOB_MS_MAX);
  const { code, signal, stdout, stderr } = await child.output();
  clearTimeout(timer);
  const cpuMs = clock.lap();
  const decoder = new TextDecoder();
  const output = decoder.decode(stdout) + decoder.decode(stderr);
  const wallMs = performance.now() - startedAt;
  print(`${output.trimEnd()}\n${seconds(wallMs)}, CPU ${seconds(cpuMs)}: ${job.name}`);
  const lines = output.split("\n");
  const named = {
    job,
    wallMs,
    cpuMs,
    // Deno names each twice: with its error and in a list.
    failures: [...new Set(lines.filter((line) => /^\S.* => \S+:\d+:\d+$| \(uncaught error\)$/.test(line)))],
    skips: lines.filter((line) => / \.\.\. ignored \(/.test(line)),
  };
  const totals = lines.findLast((line) => /^(ok|FAILED) \| \d+ passed/.test(line));
  const count = (what: string) => Number(new RegExp(`(\\d+) ${what}`).exec(totals ?? "")?.[1] ?? 0);
  const counts = { passed: count("passed"), failed: count("failed"), skipped: named.skips.length };
  if (totals !== undefined && (code === 0 || counts.failed > 0)) return { ...named, ...counts };
  const reason = signal === null ? `exit code ${code}` : `killed by ${signal}`;
  const failures = [...named.failures, `${job.name} ended with ${reason}`];
  return { ...named, ...counts, failed: counts.failed + 1, failures };
}

/** Runs jobs in order, some at a time. */
async function runJobs(jobs: readonly Job[], environment: Environment): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = [...jobs];
  await Promise.all(Array.from({ length: PARALLEL }, async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      outcomes.push(await runJob(job, environment));
    }
  }));
  return outcomes;
}

/** Writes an import map with which tests start isolates from the bundled program. Returns its path. */
async function writeImportMap(program: string, folder: string): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(join(repository, "deno.json"))) as {
    readonly imports: Readonly<Record<string, string>>;
  };
  const root = pathToFileURL(repository);
  const map = new Map<string, string>();
  for (const [name, address] of Object.entries(imports)) {
    map.set(name, address.startsWith("./") ? new URL(address, root).href : address);
    // Entries of deno.json include the modules of a package.
    if (address.startsWith("npm:")) map.set(`${name}/`, `${address.replace("npm:", "npm:/")}/`);
  }
  const programRoot = "mod/kit/processes/program_root.ts";
  map.set(new URL(programRoot, root).href, pathToFileURL(join(program, programRoot)).href);
  const path = join(folder, "imports.json");
  await Deno.writeTextFile(path, JSON.stringify({ imports: Object.fromEntries(map) }));
  return path;
}

/** Runs all tests and prints a summary. Returns the exit code. */
async function runAll(): Promise<number> {
  const clock = new CpuClock();
  const phases: string[] = [];
  let startedAt = performance.now();
  const endPhase = (name: string) => {
    phases.push(`${name} ${seconds(performance.now() - startedAt)}`);
    startedAt = performance.now();
  };
  const services = await installServices(print);
  endPhase("services");
  const folder = await Deno.makeTempDir();
  try {
    let outcomes: readonly Outcome[];
    {
      await using s3 = swift.find() === null ? null : await SwiftServer.launch();
      const program = await makeProgram();
      const jobs = await planJobs(testFiles(), { repository, folder });
      const importMap = await writeImportMap(program, folder);
      clock.lap();
      endPhase("bundles");
      outcomes = await runJobs(jobs, { env: { ...services, ...s3?.env }, importMap, program, clock });
      endPhase("tests");
    }
    return summarize(outcomes, `${phases.join(", ")}; CPU ${clock.total()}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Prints skipped and failed tests, times and totals. Returns the exit code. */
function summarize(outcomes: readonly Outcome[], times: string): number {
  const total = (what: "passed" | "failed" | "skipped") =>
    outcomes.reduce((sum, outcome) => sum + outcome[what], 0);
  const [passed, failed, skipped] = [total("passed"), total("failed"), total("skipped")];
  const list = (heading: string, lines: readonly string[]) => {
    if (lines.length > 0) print(`\n${heading}\n  ${lines.join("\n  ")}`);
  };
  list("Skipped:", outcomes.flatMap(({ skips }) => skips.map((line) => line.trim())));
  list("Failed:", outcomes.flatMap(({ failures }) => failures));
  const slowest = outcomes.toSorted((a, b) => b.wallMs - a.wallMs).slice(0, SLOWEST_SHOWN);
  list(
    "Slowest:",
    slowest.map(({ job, wallMs, cpuMs }) => `${seconds(wallMs)}, CPU ${seconds(cpuMs)}: ${job.name}`),
  );
  print(`\nTime: ${times}`);
  print(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  return failed > 0 ? 1 : 0;
}

/**
 * Runs all tests with temporary files in memory, in a separate mount namespace. Returns the exit code; `null` if the
 * system does not allow that.
 */
async function runInMemory(): Promise<number | null> {
  if (Deno.build.os !== "linux" || freeMemoryMiB() < FREE_MEMORY_MIB_MIN) return null;
  // A short path: paths of sockets are limited to some 100 characters.
  const folder = join(Deno.env.get("TMPDIR") ?? "/tmp", `s${Deno.pid}`);
  await Deno.mkdir(folder);
  try {
    const mount = `mount -t tmpfs -o size=${TMPFS_MIB}m,mode=1777 tmpfs "$0" && exec "$@"`;
    const inNamespace = (command: string[]) => ["--mount", "sh", "-c", mount, folder, ...command];
    const probe = await new Deno.Command("unshare", {
      args: inNamespace(["true"]),
      stdout: "null",
      stderr: "null",
    }).output().catch(() => null);
    if (probe?.success !== true) return null;
    const command = [
      Deno.execPath(),
      "run",
      "--quiet",
      "--no-prompt",
      "-P=test",
      fileURLToPath(import.meta.url),
    ];
    const child = new Deno.Command("unshare", {
      args: inNamespace(command),
      cwd: repository,
      env: { TMPDIR: folder, [INSIDE_TMPFS]: "1" },
    }).spawn();
    return (await child.status).code;
  } finally {
    await Deno.remove(folder);
  }
}

/** Memory that the machine has free and its control group allows. */
function freeMemoryMiB(): number {
  const limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].map((path) => {
    // The runtime lets programs read /sys only with all permissions.
    const { stdout } = new Deno.Command("cat", { args: [path], stderr: "null" }).outputSync();
    const bytes = parseInt(new TextDecoder().decode(stdout));
    return Number.isNaN(bytes) ? Infinity : bytes;
  });
  return Math.min(Deno.systemMemoryInfo().available, ...limits) / 2 ** 20;
}

/** Runs `deno test` with the permissions of the suite. Returns the exit code. */
async function runSome(args: readonly string[]): Promise<number> {
  const env = await installServices(print);
  const command = ["test", "--no-prompt", "-P=test", ...args];
  return (await new Deno.Command(Deno.execPath(), { args: command, cwd: repository, env }).spawn().status)
    .code;
}

const isInside = Deno.env.get(INSIDE_TMPFS) !== undefined;
Deno.exit(
  Deno.args.length > 0
    ? await runSome(Deno.args)
    : isInside
    ? await runAll()
    : await runInMemory() ?? await runAll(),
);
