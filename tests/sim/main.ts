/**
 * Runs the simulation with fresh seeds for as long as asked: `deno task test:sim [seconds] [first seed]`. A seed that fails is
 * made as small as it gets and printed; the exit code is 1 then.
 */
import { minimise } from "./support/minimise.ts";
import { simulate, Violation } from "./support/simulation.ts";

const STEPS = 1_000;

const seconds = Number(Deno.args[0] ?? 120);
const first = Number(Deno.args[1] ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const until = performance.now() + seconds * 1000;
const totals = { seeds: 0, steps: 0, commits: 0, transitions: 0 };
const write = (line: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));

for (let seed = first; performance.now() < until; seed = (seed + 1) >>> 0) {
  try {
    const report = await simulate({ seed, steps: STEPS });
    totals.seeds++;
    totals.steps += report.steps;
    totals.commits += report.commits;
    totals.transitions += report.transitions;
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    write(`${error.stack}\n${error.cause instanceof Error ? error.cause.stack : ""}`);
    write(`smallest form: ${JSON.stringify(await minimise(error))}`);
    write(JSON.stringify(totals));
    Deno.exit(1);
  }
}
write(`no violation: ${JSON.stringify({ first, ...totals })}`);
