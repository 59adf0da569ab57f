/** Public API of `syncline/server`. */
export { UserError } from "../../errors.ts";
export type { CallArgs, FunctionReference } from "../../protocol/function_reference.ts";
export type { Register } from "../../protocol/client_function_names.ts";
export type { ArgsOf, ResultOf } from "../../protocol/server_function_names.ts";
export { functionReference } from "../../protocol/function_reference.ts";
export type {
  ActionCtx,
  Auth,
  CallerIdentity,
  Log,
  MutationCtx,
  PresenceReader,
  PresentMember,
  QueryCtx,
  TokenClaims,
} from "./context.ts";
export type {
  Aggregate,
  DatabaseReader,
  DatabaseWriter,
  OrderedQuery,
  PaginationOptions,
  PaginationResult,
  TableQuery,
  UnorderedQuery,
} from "./database.ts";
export { paginationOpts } from "./pagination.ts";
export type {
  ApiFromModules,
  NotCallable,
  RegisteredFunction,
  Visibility,
} from "../../protocol/api_reference.ts";
export { anyApi, createApi } from "../../protocol/api_reference.ts";
export {
  action,
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
  untypedAction,
  untypedInternalAction,
  untypedInternalMutation,
  untypedInternalQuery,
  untypedMutation,
  untypedQuery,
} from "./registration.ts";
export type { RateLimit, RateLimitedData, RatePeriod } from "./rate_limit.ts";
export type { AppDataModel, DataModelOf, Doc, Schema } from "./schema.ts";
export { type CronJobs, cronJobs } from "./cron_jobs.ts";
export type { SchedulableName, Scheduler } from "./scheduler.ts";
export type { HttpAction, HttpHandler, HttpMethod, HttpRouter } from "./http_router.ts";
export { httpAction, httpRouter } from "./http_router.ts";
export type {
  FileMetadata,
  StorageActions,
  StorageReader,
  StorageWriter,
  StreamOptions,
  Streams,
  StreamWriter,
} from "./storage.ts";
export { authEventArgs, userEvent } from "./auth_hooks.ts";
export { defineProfile, type ProfileOf } from "./profile.ts";
export { createFunctions, defineSchema, defineTable, id } from "./schema.ts";
export type {
  AnyDataModel,
  DataModel,
  DocumentOf,
  Id,
  ProfileSource,
  Readable,
  ScheduledFunctionFields,
  ScheduledFunctionState,
  TableNames,
} from "./values.ts";
