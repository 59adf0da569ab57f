/** The changes of a deploy as lines for a terminal or a CI log. */
import type { DeployChanges, DeployedVersions } from "../../ops/deploy/mod.ts";

/** Names listed of each kind; further ones are counted. */
const NAMES_SHOWN = 30;

/** Missing in the answer of an older server, which counts the bundle of functions among the files. */
type Newer = "crons" | "jobs" | "codeChanged";
type Changes = Omit<DeployChanges, Newer> & Partial<Pick<DeployChanges, Newer>>;

export function changesText(
  { functions, crons, jobs, codeChanged, files, frontendGoes, schema }: Changes,
): string {
  const lines = [
    ...listed("+ function", functions.added),
    ...listed("- function", functions.removed),
    ...listed("~ function", functions.changed),
    ...listed("+ table", schema.createdTables),
    ...listed("+ index", schema.createdIndexes),
    ...listed("- index", schema.droppedIndexes),
    ...listed("+ cron", crons?.added ?? []),
    ...listed("~ cron", crons?.changed ?? []),
    ...(crons?.removed ?? []).map((name) =>
      `! cron ${name} is not in this version: it does not run any more`
    ),
    ...(jobs?.lost ?? []).map(({ function: path, jobs }) =>
      `! function ${path} is not in this version: ${counted(jobs, "waiting job")} ` +
      `${
        jobs === 1 ? "calls it and fails when it is" : "call it and fail when they are"
      } due, unless a later version has the function`
    ),
    ...jobs?.complete === false ? ["! more jobs wait than were counted: the numbers above are at least"] : [],
    ...frontendGoes ? ["! the frontend is removed: this version has none"] : [],
    ...schema.unreachable.map(({ table, documents }) =>
      `! table ${table} is not in the schema: ${counted(documents, "document")} of it ${
        documents === 1 ? "stays" : "stay"
      } in the database, out of reach of the functions until a schema ` +
      "has the table again; delete documents first if you do not want to keep them"
    ),
    ...schema.misfits.flatMap(({ table, documents, first }) => [
      `! ${counted(documents, "document")} of ${table} ${documents === 1 ? "does" : "do"} not fit:`,
      ...first.map(({ id, reason }) => `    ${id}  ${reason}`),
      ...documents > first.length ? [`    and ${documents - first.length} more`] : [],
    ]),
  ];
  const { added, removed, changed } = files;
  if (added + removed + changed > 0) {
    lines.push(
      `${codeChanged === undefined ? "" : "frontend: "}${
        counted(added, "file")
      } added, ${removed} removed, ${changed} changed`,
    );
  }
  if (lines.length > 0) return lines.join("\n");
  return codeChanged
    ? "Fields of the schema, or code that functions import, have changed."
    : "No file has changed.";
}

/** The versions of a server, with the one that is served and the next one of a rollback without a hash. */
export function versionsText(versions: DeployedVersions["versions"]): string {
  const next = versions.find(({ current }) => !current)?.hash;
  const lines = versions.map(({ hash, deployedAt, by, current, message }) =>
    `  ${hash}  ${new Date(deployedAt).toISOString()}  ${by}` +
    (current ? "  (served)" : hash === next ? "  (next rollback)" : "") +
    (message ? `  ${message}` : "")
  );
  return ["Versions, newest deploy first:", ...lines].join("\n");
}

function listed(what: string, names: readonly string[]): string[] {
  const more = names.length - NAMES_SHOWN;
  return [
    ...names.slice(0, NAMES_SHOWN).map((name) => `${what} ${name}`),
    ...more > 0 ? [`${what}: ${more} more`] : [],
  ];
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
