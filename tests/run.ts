/**
 * Runs the whole suite: most files side by side, then those that need the machine, or the process, for themselves. With
 * arguments it is `deno test` with the suite's permissions.
 */
import { fileURLToPath } from "node:url";

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
  // The working folder is of the whole process.
  "tests/server/config_test.ts",
];

const repository = fileURLToPath(new URL("..", import.meta.url));

/** Files side by side: as many as there are processors, but a file may start a browser and several servers. */
const JOBS = String(Math.min(navigator.hardwareConcurrency, 4));

async function test(...args: string[]): Promise<number> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-prompt", "-P=test", ...args],
    cwd: repository,
    env: { DENO_JOBS: Deno.env.get("DENO_JOBS") ?? JOBS },
    stdin: "null",
  });
  return (await command.spawn().status).code;
}

async function whole(): Promise<number> {
  const together = await test("--parallel", `--ignore=${ALONE.join(",")}`, "tests");
  // Also when something failed: all that does not work is told at once.
  const alone = await test(...ALONE);
  return together || alone;
}

Deno.exit(Deno.args.length === 0 ? await whole() : await test(...Deno.args));
