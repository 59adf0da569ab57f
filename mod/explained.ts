/** The page of the documentation that explains an error code (DO3). */

/** Pages by code, as paths below `/_/docs/`. */
export const helpPages = {
  // Mistakes in functions; the first ones are codes of `EngineError`.
  limit: "limits",
  ended: "functions#reading-and-writing",
  unknown_table: "schema",
  unknown_index: "queries#indexes-filters-and-search",
  bad_bounds: "queries#indexes-filters-and-search",
  bad_search: "queries#indexes-filters-and-search",
  not_storable: "schema#fields",
  bad_schema: "schema",
  filter: "queries#indexes-filters-and-search",
  count: "counting",
  function_kind: "functions",
  package: "functions#npm-packages",
  rate_limit: "rate_limits",
  route: "http#define-http-routes",
  schedule: "scheduling",
  time: "queries#time",
  // Errors of the server and of commands.
  app_not_loaded: "troubleshooting#the-server-does-not-start",
  backup: "backups",
  bucket: "files",
  cluster: "cluster",
  data_folder: "self_hosting",
  deploy: "deploying",
  environment: "deploying#environment-variables",
  import: "import_export",
  mail: "authentication#mail-and-server-options",
  metrics: "metrics",
  migration: "data_migrations",
  option: "options",
  replication: "replication",
  restore: "backups#restore",
  telemetry: "telemetry",
  takeover: "upgrades#without-a-pause",
  workers: "sizing#processors",
} as const satisfies Record<string, string>;

/** A code that a page explains. */
export type HelpCode = keyof typeof helpPages;

/** Codes of errors without a class of their own. App code cannot add to it. */
const codes = new WeakMap<Error, HelpCode>();

/** Attaches a code to an error and returns the error. */
export function withHelp<E extends Error>(error: E, code: HelpCode): E {
  codes.set(error, code);
  return error;
}

/** Returns the code attached by {@linkcode withHelp}. */
export function helpCodeOf(error: Error): HelpCode | undefined {
  return codes.get(error);
}

/** Returns the path of the page, such as `/_/docs/limits`; `null` for a code that no page explains. */
export function docsPath(code: unknown): string | null {
  return typeof code === "string" && Object.hasOwn(helpPages, code)
    ? `/_/docs/${helpPages[code as HelpCode]}`
    : null;
}

/** Returns the log field with the code of an error, or no field. */
export function helpFields(error: unknown): { readonly code?: HelpCode } {
  if (!(error instanceof Error)) return {};
  const { code = codes.get(error) } = error as { code?: unknown };
  return typeof code === "string" && Object.hasOwn(helpPages, code) ? { code: code as HelpCode } : {};
}
