/** Written by `syncline dev` and `syncline deploy` from the files in this folder. Commit it; do not edit it. */
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
  tasks: typeof import("./tasks.ts");
}

/** References to functions: `api` for those of clients, `internal` for internal ones. */
export const { api, internal } = createApi<Modules>();

/** The tables, as types. */
export type Model = AppDataModel<typeof import("./schema.ts")>;

export type Doc<Table extends TableNames<Readable<Model>>> = DocumentOf<Readable<Model>, Table>;

/** The `ctx` of queries. That of mutations is one too. */
export type QueryCtx = QueryCtxOf<Model>;

/** The `ctx` of mutations. */
export type MutationCtx = MutationCtxOf<Model>;
