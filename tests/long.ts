/**
 * Runs tests for longer than the gate does: `deno task test:long [name...]`, without a name all of them, one after the
 * other. Each repeats something random more often, or runs at full size.
 */
import { fileURLToPath } from "node:url";
import { installServices } from "./support/install_services.ts";

const LONG_TESTS: Readonly<Record<string, readonly string[]>> = {
  /** Takeovers in a cluster whose servers are stopped, killed, frozen and cut off. */
  cluster: ["tests/cluster/faults_test.ts", "tests/cluster/forwarding_test.ts"],
  /** List histories of one server, of workers and of a cluster, during faults. */
  consistency: ["tests/consistency"],
  /** Kills of servers and writers under load. */
  durability: ["tests/durability", "tests/scheduler/kill_test.ts", "tests/storage/real_server_test.ts"],
  /** The client over connections that break. */
  faults: ["tests/client/fault_proxy_test.ts"],
  /** The examples and templates for other frameworks, installed and built. The examples are opened in a browser. */
  frameworks: ["tests/npm/framework_examples.ts", "tests/npm/framework_templates.ts"],
  /** Frames that no client would send. */
  fuzz: ["tests/sync/fuzz_test.ts"],
  /** Attacks, with those that take minutes. */
  hostile: ["tests/hostile"],
  /** Kills of isolates and functions that misbehave. */
  isolates: ["tests/functions/host/isolate_host_test.ts", "tests/functions/host/misbehaviour_test.ts"],
  /** Random Range headers. */
  ranges: ["tests/storage/ranges_test.ts"],
  /** The commands of the README in a clone. */
  readme: ["tests/clone/readme_commands.ts"],
  /** Kills of a replicating server. */
  replica: ["tests/ops/replication/kill_test.ts"],
  /** Simulations with fresh seeds; `deno task test:sim` runs them until it is stopped. */
  simulation: ["tests/sim"],
  /** Takeovers on one machine under full load. */
  takeovers: ["tests/server/takeover_test.ts"],
};

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

const names = Deno.args.length > 0 ? Deno.args : Object.keys(LONG_TESTS);
const unknown = names.find((name) => !(name in LONG_TESTS));
if (unknown !== undefined) {
  print(`There is no long test "${unknown}"; there are ${Object.keys(LONG_TESTS).join(", ")}`);
  Deno.exit(2);
}
const services = await installServices(print);
const failed: string[] = [];
for (const name of names) {
  print(`== ${name}`);
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-prompt", "-P=test", ...LONG_TESTS[name] ?? []],
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...services, SYNCLINE_TEST_LONG: "1" },
  }).spawn().status;
  if (!success) failed.push(name);
}
if (failed.length > 0) print(`Failed: ${failed.join(", ")}`);
Deno.exit(failed.length > 0 ? 1 : 0);
