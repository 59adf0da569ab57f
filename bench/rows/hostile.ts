/** Attacks of `tests/hostile`, each beside an ordinary user: how long that user waits. */
import { attacks } from "../../tests/hostile/scenarios/attacks.ts";
import { controlScenarios } from "../../tests/hostile/scenarios/control_scenarios.ts";
import { Suite, tableOf } from "../../tests/hostile/support/suite.ts";
import type { BenchContext } from "../context.ts";
import type { Row } from "../table.ts";

/** Runs all attacks, with `--full` also the long ones. Prints a table of all waits. */
export async function hostileRows({ full }: BenchContext): Promise<Row[]> {
  await using suite = new Suite({ isMeasured: true });
  const failed = new Map<string, string>();
  const scenarios = [...controlScenarios, ...attacks.filter(({ long = false }) => full || !long)];
  for (const scenario of scenarios) {
    await suite.run(scenario).catch((error) => failed.set(scenario.name, String(error)));
  }
  Deno.stdout.writeSync(new TextEncoder().encode(`${tableOf(suite.results)}\n`));
  const control = suite.results[1]?.waits?.query.p99Ms ?? NaN;
  return suite.results.map(({ scenario: { rule, name }, waits }) => ({
    name: `${rule}, beside ${name}: a query waits, p99`,
    measured: `${waits?.query.p99Ms.toFixed(1)} ms${failed.has(name) ? `, ${failed.get(name)}` : ""}`,
    control: `${control.toFixed(1)} ms beside other programs`,
    ratio: failed.has(name) ? 1 : 0,
    target: { atMost: 0 },
    details: { waits },
  }));
}
