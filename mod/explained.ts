/** Which page of the documentation explains a message that authors and operators read: the one table of that. */

/** Words of a message, and the page as `/_/docs/` shows it. The first row that fits counts. */
type Row = readonly [words: RegExp, page: string];

/** What functions can be told, in words that an app's own errors hardly have. */
const OF_FUNCTIONS: readonly Row[] = [
  [/more than the limit of \d|the limit is \d|ran longer than its limit of|more than \d+ deep/, "limits"],
  [
    /packages are installed in the app's folder|install the package in the app's folder|is not available to app code|app code imports its own files|[Nn]ative addon/,
    "functions#npm-packages",
  ],
  [
    /is not available in (?:queries|functions)|of a UserError|await every(?:thing| promise)|must return a Response/,
    "functions",
  ],
  [/There is no index|is not a cursor of this query|a vector search gives|filter\(\) cannot/, "queries"],
  [/cannot be scheduled|Cannot schedule |A cron needs a name|Duplicate cron/, "scheduling"],
  [/Cannot store (?:field|this document)|There is no table "|by defineTable/, "schema"],
  [
    /(?:handler|path|pathPrefix) of a route|Duplicate route |by httpAction/,
    "http#define-http-routes",
  ],
];

/** What the server tells its operator. */
const OF_THE_SERVER: readonly Row[] = [
  [/ctx\.env|--env-file|environment file/, "deploying"],
  [/(?:does|do) not fit the schema|documents do not fit/i, "data_migrations"],
  [/[Bb]ackup/, "backups"],
  [/\bcluster\b/, "cluster"],
  [/replica|--follow|--promote|restore/i, "replication"],
  [/--workers|[Ss]everal processes/, "sizing#processors"],
  [/takeover|takes over|to give way/, "upgrades#without-a-pause"],
  [/--metrics/, "metrics"],
  [
    /[Dd]eploy|serves the folder it was started with|--url https|no Syncline server|front end|--static/,
    "deploying",
  ],
  [/mail server|--mail-|--smtp|confirm an address/, "authentication"],
  [/bucket|--storage/, "files"],
  [
    /cannot be served|functions folder|folder that the functions|The edit is not served|type check/,
    "functions",
  ],
  [/administrator/, "http_api"],
  [/Port \d+ of|data folder|database of/, "self_hosting"],
  [/did you mean SYNCLINE_|--[a-z-]+/, "options"],
];

/** The path of the page on a server, such as `/_/docs/limits`; `null` where there is none. */
export function explainedAt(message: string, of: "functions" | "server"): string | null {
  const rows = of === "functions" ? OF_FUNCTIONS : [...OF_FUNCTIONS, ...OF_THE_SERVER];
  const page = rows.find(([words]) => words.test(message))?.[1];
  return page === undefined ? null : `/_/docs/${page}`;
}

/** Every page that is named. */
export const explainingPages: readonly string[] = [...OF_FUNCTIONS, ...OF_THE_SERVER].map(([, page]) => page);
