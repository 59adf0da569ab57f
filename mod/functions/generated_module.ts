/** An app's `_generated.ts`: references to its functions, and types of documents and `ctx`. Written by `dev` and `deploy`. */
import type { Log } from "../kit/log.ts";
import { findModules } from "./module_files.ts";

/** Name of the file in the functions folder. Names with an underscore are not modules of the app. */
export const GENERATED_FILE = "_generated.ts";

/** Modules that the server reads for another purpose than functions. */
const WITHOUT_FUNCTIONS: readonly string[] = ["crons", "http", "schema"];

/** Writes `_generated.ts` if its contents change. Apps without TypeScript get none. Logs a warning if that fails. */
export async function updateGeneratedModule(functionsDir: string, log: Log): Promise<void> {
  try {
    const files = findModules(functionsDir).map(({ name }) => name);
    if (!files.some((name) => /\.tsx?$/.test(name))) return;
    const file = `${functionsDir}/${GENERATED_FILE}`;
    const contents = generatedModule(files);
    const existing = await Deno.readTextFile(file).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    });
    if (existing !== contents) await Deno.writeTextFile(file, contents);
  } catch (error) {
    log("warn", `Cannot update ${GENERATED_FILE}`, { error });
  }
}

/** Returns the contents for these files, named relative to the functions folder. */
export function generatedModule(files: readonly string[]): string {
  const modules = files.map((file) => ({ file, path: file.replace(/\.\w+$/, "") }));
  const entries = modules.filter(({ path }) => !WITHOUT_FUNCTIONS.includes(path))
    .map(({ file, path }) => `  ${keyOf(path)}: typeof import("./${file}");\n`);
  const schema = modules.find(({ path }) => path === "schema");
  return `/** Written by \`syncline dev\` and \`syncline deploy\` from the files in this folder. Commit it; do not edit it. */
import {
  type AppDataModel,
  createApi,
  type DocumentOf,
  type MutationCtx as MutationCtxOf,
  type QueryCtx as QueryCtxOf,
  type Readable,
  type TableNames,
} from "syncline/server";

export interface Modules {
${entries.join("")}}

/** References to functions: \`api\` for those of clients, \`internal\` for internal ones. */
export const { api, internal } = createApi<Modules>();

/** The tables, as types. */
export type Model = AppDataModel<${schema === undefined ? "null" : `typeof import("./${schema.file}")`}>;

export type Doc<Table extends TableNames<Readable<Model>>> = DocumentOf<Readable<Model>, Table>;

/** The \`ctx\` of queries. That of mutations is one too. */
export type QueryCtx = QueryCtxOf<Model>;

/** The \`ctx\` of mutations. */
export type MutationCtx = MutationCtxOf<Model>;
`;
}

function keyOf(path: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(path) ? path : JSON.stringify(path);
}
