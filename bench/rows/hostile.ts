/** Latency of an ordinary user during each attack of `tests/hostile`. */
import { attacks } from "../../tests/hostile/scenarios/attacks.ts";
import { controlScenarios } from "../../tests/hostile/scenarios/control_scenarios.ts";
import { Suite, tableOf } from "../../tests/hostile/support/suite.ts";
import type { BenchContext } from "../context.ts";
import { print } from "../support/print.ts";
import type { Row } from "../table.ts";

/** Runs the attacks, with `--full` also the long ones. Prints a table of all latencies. */
export async function hostileRows({ full }: BenchContext): Promise<Row[]> {
  await using suite = new Suite({ isMeasured: true });
  const failed = new Map<string, string>();
  const scenarios = [...controlScenarios, ...attacks.filter(({ long = false }) => full || !long)];
  for (const scenario of scenarios) {
    await suite.run(scenario).catch((error) => failed.set(scenario.name, String(error)));
  }
  print(tableOf(suite.results));
  const control = suite.results[1]?.waits?.query.p99Ms ?? NaN;
  return suite.results.map(({ scenario: { rule, name }, waits }) => ({
    name: `${rule}, query during ${name}, p99`,
    measured: `${waits?.query.p99Ms.toFixed(1)} ms${failed.has(name) ? `, ${failed.get(name)}` : ""}`,
    control: `${control.toFixed(1)} ms during the control scenario`,
    ratio: failed.has(name) ? 1 : 0,
    target: { atMost: 0 },
    details: { waits },
  }));
}
