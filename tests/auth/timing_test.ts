/**
 * An unknown address takes as long as a wrong password. `SYNCLINE_TIMING_TRIES` sets the tries of each kind; with many,
 * the figures printed are worth reading.
 */
import assert from "node:assert/strict";
import { PasswordHasher } from "../../mod/auth/passwords/password.ts";
import { startTestAccounts } from "./support/test_accounts.ts";

const tries = Number(Deno.env.get("SYNCLINE_TIMING_TRIES") ?? 40);
const costs = [
  { name: "today's cost", cost: undefined, tries },
  // With next to no hash around it, any other difference shows.
  { name: "next to no hash", cost: { memoryKiB: 8, passes: 1, lanes: 1 }, tries: tries * 5 },
];

for (const { name, cost, tries } of costs) {
  Deno.test(`AE6 an unknown address takes as long to refuse as a wrong password, at ${name}`, async () => {
    const passwords = new PasswordHasher(cost === undefined ? {} : { cost });
    await using accounts = await startTestAccounts({ passwords });
    const users = Array.from({ length: 20 }, (_, i) => `user-${i}@example.com`);
    for (const email of users) await accounts.signUp(email);
    const times = { unknown: [] as number[], wrong: [] as number[] };
    for (let i = 0; i < tries * 2; i++) {
      // In turns, and the first of each pair changing: what else the machine does falls on both alike.
      const kind = (i + (i >> 1)) % 2 === 0 ? "unknown" : "wrong";
      const email = kind === "wrong" ? users[i % users.length] : `nobody-${i % users.length}@example.com`;
      accounts.clock.now += 60_000;
      const began = performance.now();
      const { status } = await accounts.post("/signin", { email, password: `guess number ${i}` });
      times[kind].push(performance.now() - began);
      assert.equal(status, 401);
    }
    const [unknown, wrong] = [median(times.unknown), median(times.wrong)];
    const t = welch(times.unknown, times.wrong);
    const figures = `unknown ${unknown.toFixed(3)} ms, wrong ${wrong.toFixed(3)} ms, t ${
      t.toFixed(2)
    }, ${tries} tries each`;
    if (Deno.env.has("SYNCLINE_TIMING_TRIES")) {
      Deno.stdout.writeSync(new TextEncoder().encode(`${figures}\n`));
    }
    assert.ok(Math.abs(unknown - wrong) < 0.2 * Math.min(unknown, wrong), figures);
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Welch's t of two samples without their slowest twentieth, which is other people's work. */
function welch(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [a, b].map((values) => {
    const kept = values.toSorted((one, other) => one - other).slice(0, Math.ceil(values.length * 0.95));
    const mean = kept.reduce((sum, value) => sum + value, 0) / kept.length;
    const variance = kept.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (kept.length - 1);
    return { mean, error: variance / kept.length };
  });
  return x && y ? (x.mean - y.mean) / Math.sqrt(x.error + y.error) : NaN;
}
