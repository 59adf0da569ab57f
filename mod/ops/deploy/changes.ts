/** Changes of a deploy compared to the live version, for people who decide about it. */
import type { SchemaPreview } from "../../engine/mod.ts";
import type { AppCheck, WireCron } from "../../functions/host/mod.ts";
import { deployLimits } from "../limits.ts";
import type { Manifest } from "../../functions/versions/mod.ts";

export interface Difference {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

export interface DeployChanges {
  readonly functions: Difference;
  /** Cron jobs of the app by name. Removed ones no longer run. */
  readonly crons: Difference;
  /** Pending jobs whose function the version lacks. They are kept and fail if they become due before it is back. */
  readonly jobs: OrphanedJobs;
  /** Whether the bundle of functions and packages differs. */
  readonly codeChanged: boolean;
  /** Numbers of files of the frontend. */
  readonly files: { readonly added: number; readonly removed: number; readonly changed: number };
  /** Whether the frontend is removed. */
  readonly frontendGoes: boolean;
  /** Tables, indexes, and documents that are invalid or become inaccessible but stay in the database. */
  readonly schema: SchemaPreview;
  /** Whether all documents match the schema. */
  readonly fits: boolean;
}

/** Pending jobs, counted by function. */
export interface WaitingJobs {
  readonly functions: readonly { readonly function: string; readonly jobs: number }[];
  /** Whether all jobs were counted. */
  readonly complete: boolean;
}

export interface OrphanedJobs {
  /** Ordered by path; the first {@linkcode deployLimits.lostFunctionsMax}. */
  readonly lost: WaitingJobs["functions"];
  readonly complete: boolean;
}

/** Functions and files of a version. */
export interface Facts {
  readonly crons: readonly WireCron[];
  readonly functions: Readonly<Record<string, string>>;
  readonly manifest: Manifest | null;
}

export function deployChanges(
  before: Facts,
  after: { readonly check: AppCheck; readonly manifest: Manifest; readonly waiting: WaitingJobs },
): DeployChanges {
  const { check: { functions, schema, crons }, manifest, waiting } = after;
  const lost = waiting.functions.filter(({ function: path }) => !Object.hasOwn(functions, path));
  const files = difference(sums(before.manifest, "frontend"), sums(manifest, "frontend"));
  const code = difference(sums(before.manifest, "code"), sums(manifest, "code"));
  return {
    functions: difference(before.functions, functions),
    crons: difference(cronTexts(before.crons), cronTexts(crons)),
    jobs: {
      lost: lost.slice(0, deployLimits.lostFunctionsMax),
      complete: waiting.complete && lost.length <= deployLimits.lostFunctionsMax,
    },
    codeChanged: code.added.length + code.removed.length + code.changed.length > 0,
    files: { added: files.added.length, removed: files.removed.length, changed: files.changed.length },
    frontendGoes: before.manifest?.static !== undefined && manifest.static === undefined,
    // System functions exist regardless of the app.
    schema: { ...schema, unreachable: schema.unreachable.filter(({ table }) => !table.startsWith("_")) },
    fits: schema.misfits.length === 0,
  };
}

function cronTexts(crons: readonly WireCron[]): Record<string, string> {
  return Object.fromEntries(crons.map((cron) => [cron.name, JSON.stringify(cron)]));
}

function sums(manifest: Manifest | null, part: "code" | "frontend"): Record<string, string> {
  const { files = {}, static: folder } = manifest ?? {};
  const isFrontend = (path: string) => folder !== undefined && path.startsWith(`${folder}/`);
  const chosen = Object.entries(files).filter(([path]) => isFrontend(path) === (part === "frontend"));
  return Object.fromEntries(chosen.map(([path, { sum }]) => [path, sum]));
}

function difference(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): Difference {
  const [old, fresh] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  return {
    added: [...fresh.keys()].filter((name) => !old.has(name)).sort(),
    removed: [...old.keys()].filter((name) => !fresh.has(name)).sort(),
    changed: [...fresh.keys()].filter((name) => old.has(name) && old.get(name) !== fresh.get(name)).sort(),
  };
}

/** Describes mismatches in one sentence with advice. */
export function mismatchText({ schema: { misfits } }: DeployChanges): string {
  const tables = misfits.map(({ table, documents, first: [example] }) =>
    `${documents} document${documents === 1 ? "" : "s"} of "${table}"` +
    (example === undefined ? "" : ` (such as ${example.id}: ${example.reason})`)
  );
  const table = misfits[0]?.table ?? "";
  return `The schema does not match ${
    tables.join(", ")
  }. Nothing has changed. Deploy a schema that accepts both ` +
    "forms, such as with .optional(). To make it strict later, write an internal mutation that changes one document, " +
    `run "npx syncline migrate <module:mutation> --table ${table}" on the server, and deploy again`;
}
