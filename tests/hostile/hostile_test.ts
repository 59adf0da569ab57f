/**
 * Attacks on a real server, each beside a bystander: one ordinary user whose longest waits every row reports. The rows
 * stand in `scenarios/`. `SYNCLINE_HOSTILE=full` runs the long ones too; `SYNCLINE_HOSTILE_ROWS` picks those whose rule or
 * name contains it.
 */
import assert from "node:assert/strict";
import { callScenarios } from "./scenarios/calls_scenarios.ts";
import { controlScenarios } from "./scenarios/control_scenarios.ts";
import { connectionScenarios } from "./scenarios/connections_scenarios.ts";
import { requestScenarios } from "./scenarios/requests_scenarios.ts";
import { socketScenarios } from "./scenarios/sockets_scenarios.ts";
import { elsewhere } from "./support/elsewhere.ts";
import type { Scenario } from "./support/scenario.ts";
import { Suite, tableOf } from "./support/suite.ts";

const scenarios: readonly Scenario[] = [
  ...controlScenarios,
  ...callScenarios,
  ...socketScenarios,
  ...connectionScenarios,
  ...requestScenarios,
];

const full = Deno.env.get("SYNCLINE_HOSTILE") === "full";
const picked = Deno.env.get("SYNCLINE_HOSTILE_ROWS");

function chosen({ rule, name, long = false }: Scenario): boolean {
  return picked === undefined
    ? full || !long
    : picked.split(",").some((part) => `${rule} ${name}`.includes(part));
}

Deno.test("what the table names elsewhere is tested there", async () => {
  for (const { test, named } of elsewhere) {
    const text = await Deno.readTextFile(new URL(`../../${test}`, import.meta.url));
    assert(text.includes(named), `${test} has no test "${named}"`);
  }
});

Deno.test("nobody takes from anybody", async (t) => {
  await using suite = new Suite();
  const rows = scenarios.filter(chosen);
  assert(rows.length > 0, `no row has ${picked} in its name`);
  for (const scenario of rows) {
    await t.step(`${scenario.rule} ${scenario.name}`, () => suite.run(scenario));
  }
  // deno-lint-ignore no-console -- the figures
  console.log(tableOf(suite.results));
});
