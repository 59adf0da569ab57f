/**
 * `ctx.rateLimit` of mutations: token buckets, stored as documents. A mutation takes a token in its own transaction, so a
 * call that fails or is refused takes none and writes nothing. Full buckets need no document; later calls remove them.
 * Administrators see the limits in use.
 */
import { z } from "zod";
import type { Doc, ScanRow } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import { withHelp } from "../../../explained.ts";
import type { RateLimit, RateLimitedData } from "../../api/rate_limit.ts";
import { createSystemFunctions, defineTable, type Schema } from "../../api/service.ts";
import { appRateLimits } from "../../limits.ts";
import type { SystemModule } from "../../system_module.ts";
import { frozenNow } from "../process/determinism.ts";
import type { Frame } from "../runs/call.ts";
import { failedAt } from "../runs/unhandled_failures.ts";

const TABLE = "_rate_limits";

const instant = z.number();

const tables = {
  [TABLE]: defineTable({
    name: z.string(),
    key: z.string(),
    /** Tokens missing at the time `at`. */
    missing: z.number(),
    at: instant,
    /** The time from which the document has no effect. */
    fullAt: instant,
    /** Tokens of a full bucket at the last call. Absent in documents of earlier versions. */
    burst: z.number().optional(),
  }).index("by_bucket", ["name", "key"]).index("by_full", ["fullAt"]),
};

/** Buckets of one name. */
export interface UsedRateLimit {
  readonly name: string;
  /** Stored buckets. */
  readonly keys: number;
  /** The emptiest bucket of those read; `null` if none of them has been used since an update from an earlier version. */
  readonly emptiest: { readonly key: string; readonly left: number; readonly burst: number } | null;
}

const { systemQuery } = createSystemFunctions({ tables } satisfies Schema<typeof tables>);

/** Returns the limits with stored buckets, by name. */
const list = systemQuery({
  args: {},
  handler: async (ctx): Promise<UsedRateLimit[]> => {
    const at = frozenNow();
    const { shownLimitsMax, keysReadMax } = appRateLimits;
    const limits: UsedRateLimit[] = [];
    for (let last = ""; limits.length < shownLimitsMax;) {
      const next = await ctx.db.query(TABLE).withIndex("by_bucket", (q) => q.gt("name", last)).first();
      if (next === null) break;
      const { name } = next;
      const buckets = () => ctx.db.query(TABLE).withIndex("by_bucket", (q) => q.eq("name", name));
      const read = (await buckets().take(keysReadMax)).flatMap(({ key, burst, ...bucket }) => {
        if (burst === undefined) return [];
        const refillMs = (bucket.fullAt - bucket.at) / bucket.missing;
        return [{
          key,
          left: Math.floor(burst - missingNow(bucket, { at, refillMs, burst }) + TOLERANCE),
          burst,
        }];
      });
      const [emptiest = null] = read.toSorted((a, b) => a.left / a.burst - b.left / b.burst);
      limits.push({ name, keys: await buckets().count(), emptiest });
      last = name;
    }
    return limits;
  },
});

/** Called by the server only, at `_system/rateLimits:<name>`. */
export const rateLimitFunctions = { list };

export const rateLimitModule: SystemModule = {
  path: "_system/rateLimits",
  tables,
  functions: rateLimitFunctions,
};

interface Bucket {
  readonly missing: number;
  readonly at: number;
}

interface CheckedLimit {
  readonly key: string;
  /** Time to add one token. */
  readonly refillMs: number;
  readonly burst: number;
}

const periods: ReadonlyMap<unknown, number> = new Map([
  ["second", 1_000],
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
]);

/** Rounding errors of a bucket, in tokens. */
const TOLERANCE = 1e-9;

/** Takes a token. @throws UserError `rate_limited` if the bucket is empty. */
export async function takeToken(frame: Frame, name: string, limit: RateLimit): Promise<void> {
  try {
    if (frame.busy) await frame.nestedSettled();
    const { writes, call: { at } } = frame;
    const { key, refillMs, burst } = checkLimit(name, limit);
    const scan = writes.scan(TABLE, "by_bucket", { eq: [name, key] }, { order: "asc", expected: 1 });
    const known = (firstDocuments(scan, 1) as (Bucket & Doc)[])[0];
    const missing = 1 + missingNow(known, { at, refillMs, burst });
    if (missing > burst + TOLERANCE) {
      throw rateLimited(name, Math.max(1, Math.ceil((missing - burst - TOLERANCE) * refillMs)));
    }
    const bucket = { name, key, missing, at, fullAt: at + missing * refillMs, burst };
    if (known === undefined) writes.insert(TABLE, bucket);
    else writes.replace(known._id, bucket);
    removeFull(frame);
  } catch (error) {
    throw failedAt(frame, `ctx.rateLimit("${String(name)}", ...)`, error);
  }
}

/** Returns the missing tokens of a bucket, at most `burst`: the limit may have changed. */
function missingNow(
  bucket: Bucket | undefined,
  { at, refillMs, burst }: { readonly at: number; readonly refillMs: number; readonly burst: number },
): number {
  if (bucket === undefined) return 0;
  // A clock that was set back also refills, or the bucket would be blocked until the old time is reached.
  const elapsedMs = Math.abs(at - bucket.at);
  return Math.min(burst, Math.max(0, bucket.missing - elapsedMs / refillMs));
}

function rateLimited(name: string, retryAfter: number): UserError {
  const data: RateLimitedData = { name, retryAfter };
  return new UserError(
    "rate_limited",
    `Too many calls of "${name}": try again in ${Math.ceil(retryAfter / 1_000)} s`,
    data,
  );
}

/** Removes some full buckets: more than a call adds, so that their number is bounded by those in use at once. */
function removeFull({ writes, call }: Frame): void {
  const upper = { value: call.at, inclusive: true };
  const { removedPerCall } = appRateLimits;
  const scan = writes.scan(TABLE, "by_full", { eq: [], upper }, { order: "asc", expected: removedPerCall });
  for (const { _id } of firstDocuments(scan, removedPerCall)) writes.delete(_id);
}

function firstDocuments(rows: Iterable<ScanRow>, count: number): Doc[] {
  const documents: Doc[] = [];
  for (const { doc } of rows) {
    documents.push(doc);
    if (documents.length === count) break;
  }
  return documents;
}

function checkLimit(name: string, limit: RateLimit): CheckedLimit {
  const { nameCharsMax, keyCharsMax, refillMsMax } = appRateLimits;
  if (typeof name !== "string" || name === "" || name.length > nameCharsMax) {
    throw new TypeError(`rateLimit() needs a name of 1 to ${nameCharsMax} characters`);
  }
  const { key = "", rate, per, burst = Math.max(1, rate) } = limit ?? {};
  if (typeof key !== "string" || key.length > keyCharsMax) {
    throw new TypeError(
      `The key of rate limit "${name}" must be a string of up to ${keyCharsMax} characters`,
    );
  }
  const periodMs = periods.get(per) ?? per;
  for (const [field, value, min] of [["rate", rate, 0], ["per", periodMs, 0], ["burst", burst, 1]] as const) {
    if (typeof value === "number" && Number.isFinite(value) && (min === 0 ? value > 0 : value >= min)) {
      continue;
    }
    throw new TypeError(
      `Rate limit "${name}" has ${field} ${String(value)}: ${
        field === "per"
          ? 'use "second", "minute", "hour", "day" or milliseconds'
          : `use a number ${min === 0 ? "above 0" : "from 1 on"}`
      }`,
    );
  }
  const refillMs = Number(periodMs) / rate;
  if (refillMs * burst > refillMsMax) {
    throw withHelp(
      new RangeError(
        `Rate limit "${name}" takes more than ${
          refillMsMax / 86_400_000
        } days to refill: use a smaller burst or a higher rate`,
      ),
      "rate_limit",
    );
  }
  return { key, refillMs, burst };
}
