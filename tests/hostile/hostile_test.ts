/**
 * Attacks on a real server with a bystander, an ordinary user whose calls must be answered. The attacks are in
 * `scenarios/`. `SYNCLINE_HOSTILE_ROWS` selects those whose rule or name contains it. `deno task bench hostile` runs the same
 * attacks and measures the bystander's latency.
 */
import assert from "node:assert/strict";
import { isLongRun } from "../support/long_runs.ts";
import { elsewhere } from "./support/elsewhere.ts";
import { Suite } from "./support/suite.ts";
import { attacks } from "./scenarios/attacks.ts";
import type { Scenario } from "./support/scenario.ts";

const picked = Deno.env.get("SYNCLINE_HOSTILE_ROWS");

function isChosen({ rule, name, long = false }: Scenario): boolean {
  return picked === undefined
    ? isLongRun || !long
    : picked.split(",").some((part) => `${rule} ${name}`.includes(part));
}

Deno.test("features named elsewhere in the table are tested there", async () => {
  for (const { test, named } of elsewhere) {
    const text = await Deno.readTextFile(new URL(`../../${test}`, import.meta.url));
    assert(text.includes(named), `${test} has no test "${named}"`);
  }
});

Deno.test("one client cannot exhaust the server", async (t) => {
  await using suite = new Suite({ isMeasured: false });
  // Attacks that continue come last, so that no other has to run beside them.
  const rows = attacks.filter(isChosen).toSorted((a, b) =>
    Number(a.alone ?? false) - Number(b.alone ?? false)
  );
  assert(rows.length > 0, `no row has ${picked} in its name`);
  for (const scenario of rows) {
    await t.step(`${scenario.rule} ${scenario.name}`, () => suite.run(scenario));
  }
});
