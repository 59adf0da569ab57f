/** What functions and tables of the service itself are made with, beside what apps import. */
export type { AnyDataModel, DataModel, DocumentOf, Id } from "./values.ts";
export {
  createFunctions,
  type DataModelOf,
  defineTable,
  id,
  type Schema,
  setTableResolver,
} from "./schema.ts";
export type { MutationCtx, QueryCtx } from "./context.ts";
export { functionSpec, internalMutation } from "./registration.ts";
