/**
 * Runs the simulations, of one server and of a cluster, with fresh seeds for as long as asked: `deno task test:sim [seconds]
 * [first seed]`. Prints a failing seed, which it reduces for one server. The exit code is 1 then.
 */
import { simulateCluster } from "./cluster/cluster_simulation.ts";
import { minimise } from "./support/minimise.ts";
import { simulate, Violation } from "./support/simulation.ts";

const STEPS = 1_000;

const seconds = Number(Deno.args[0] ?? 120);
const first = Number(Deno.args[1] ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const until = performance.now() + seconds * 1000;
const totals = { seeds: 0, steps: 0, commits: 0, transitions: 0, takeovers: 0 };
const write = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

for (let seed = first; performance.now() < until; seed = (seed + 1) >>> 0) {
  let ofCluster = false;
  try {
    const alone = await simulate({ seed, steps: STEPS });
    ofCluster = true;
    const cluster = await simulateCluster({ seed, steps: STEPS });
    totals.seeds++;
    for (const name of ["steps", "commits", "transitions"] as const) {
      totals[name] += alone[name] + cluster[name];
    }
    totals.takeovers += cluster.takeovers;
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    write(`${ofCluster ? "of the cluster: " : ""}${error.stack}`);
    write(error.cause instanceof Error ? error.cause.stack ?? "" : "");
    if (!ofCluster) write(`smallest form: ${JSON.stringify(await minimise(error))}`);
    write(JSON.stringify(totals));
    Deno.exit(1);
  }
}
write(`no violation: ${JSON.stringify({ first, ...totals })}`);
