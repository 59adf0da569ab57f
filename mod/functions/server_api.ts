/** What apps import as `syncline/server`. */
export { UserError } from "../errors.ts";
export type { ArgsOf, CallArgs, FunctionReference, ResultOf } from "../protocol/function_reference.ts";
export { functionReference } from "../protocol/function_reference.ts";
export type { ActionCtx, Auth, CallerIdentity, Log, MutationCtx, QueryCtx } from "./api/context.ts";
export type {
  DatabaseReader,
  DatabaseWriter,
  OrderedQuery,
  PaginationOptions,
  PaginationResult,
  TableQuery,
  UnorderedQuery,
} from "./api/database.ts";
export { paginationOpts } from "./api/pagination.ts";
export type { ApiFromModules, RegisteredFunction, Visibility } from "../protocol/api_reference.ts";
export { anyApi, createApi } from "../protocol/api_reference.ts";
export {
  action,
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
} from "./api/registration.ts";
export type { DataModelOf, Doc, Schema } from "./api/schema.ts";
export { type CronJobs, cronJobs } from "./api/cron_jobs.ts";
export type { Scheduler } from "./api/scheduler.ts";
export type { HttpAction, HttpHandler, HttpMethod, HttpRouter } from "./api/http_router.ts";
export { httpAction, httpRouter } from "./api/http_router.ts";
export type { FileMetadata, StorageActions, StorageReader, StorageWriter } from "./api/storage.ts";
export { createFunctions, defineSchema, defineTable, id } from "./api/schema.ts";
export type {
  AnyDataModel,
  DataModel,
  Id,
  ScheduledFunctionFields,
  ScheduledFunctionState,
} from "./api/values.ts";
