/** Sign-ins with an unknown address and with a wrong password must take the same time. */
import assert from "node:assert/strict";
import { PasswordHasher } from "../../mod/auth/passwords.ts";
import { startTestAccounts } from "../../tests/auth/support/test_accounts.ts";
import type { BenchContext } from "../context.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

/** A cheap hash reveals differences in the rest of the code. */
const COSTS = [
  { name: "with the default hash", cost: undefined, factor: 1 },
  { name: "with a cheap hash", cost: { memoryKiB: 8, passes: 1, lanes: 1 }, factor: 5 },
];
/** Maximum difference as a share of the shorter time. */
const DIFFERENCE_MAX = 0.2;

export async function signInTimingRows({ full }: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { name, cost, factor } of COSTS) {
    const tries = (full ? 400 : 40) * factor;
    const passwords = new PasswordHasher(cost === undefined ? {} : { cost });
    await using accounts = await startTestAccounts({ passwords });
    const users = Array.from({ length: 20 }, (_, i) => `user-${i}@example.com`);
    for (const email of users) await accounts.signUp(email);
    const times = { unknown: [] as number[], wrong: [] as number[] };
    for (let i = 0; i < tries * 2; i++) {
      // Pairs alternate their order, so that other load affects both kinds equally.
      const kind = (i + (i >> 1)) % 2 === 0 ? "unknown" : "wrong";
      const email = kind === "wrong" ? users[i % users.length] : `unknown-${i % users.length}@example.com`;
      accounts.clock.now += 60_000;
      const startedAt = performance.now();
      const { status } = await accounts.post("/signin", { email, password: `guess number ${i}` });
      times[kind].push(performance.now() - startedAt);
      assert.equal(status, 401);
    }
    const [unknown, wrong] = [median(times.unknown), median(times.wrong)];
    rows.push({
      name: `sign-in refused for an unknown address, ${name}: difference as a share`,
      measured: `${unknown.toFixed(3)} ms, t ${welch(times.unknown, times.wrong).toFixed(2)}`,
      control: `${wrong.toFixed(3)} ms for a wrong password`,
      ratio: Math.abs(unknown - wrong) / Math.min(unknown, wrong),
      target: { atMost: DIFFERENCE_MAX },
      details: times,
    });
  }
  return rows;
}

/** Returns Welch's t of two samples without their slowest twentieth, which other load causes. */
function welch(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [a, b].map((values) => {
    const kept = values.toSorted((one, other) => one - other).slice(0, Math.ceil(values.length * 0.95));
    const mean = kept.reduce((sum, value) => sum + value, 0) / kept.length;
    const variance = kept.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (kept.length - 1);
    return { mean, error: variance / kept.length };
  });
  return x && y ? (x.mean - y.mean) / Math.sqrt(x.error + y.error) : NaN;
}
