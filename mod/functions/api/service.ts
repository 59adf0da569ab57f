/** Additional API for functions and tables of the service. */
export type { AnyDataModel, DataModel, DocumentOf, Id } from "./values.ts";
export {
  createFunctions,
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  id,
  type Schema,
  setTableResolver,
} from "./schema.ts";
export type { MutationCtx, QueryCtx } from "./context.ts";
export { functionSpec, untypedInternalMutation as internalMutation } from "./registration.ts";
export { paginationOpts } from "./pagination.ts";
export type { OrderedQuery, PaginationResult } from "./database.ts";
export type { Unchecked } from "./values.ts";
export type {
  FieldIssue,
  FunctionFacts,
  Inspector,
  JsonSchema,
  Lineage,
  LineageKeeper,
  SystemMutationCtx,
  SystemQueryCtx,
  TableFacts,
} from "./system_context.ts";
