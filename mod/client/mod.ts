/**
 * `syncline/client`: live queries, mutations and actions from browsers, Node, Bun and Deno. Browser-safe: types are all
 * that has to be stripped from these files.
 *
 * @module
 */
export {
  type ConnectionState,
  type FileUrlOptions,
  type MutationOptions,
  type QueryWatch,
  SynclineClient,
  type SynclineClientOptions,
} from "./client.ts";
export { SynclineHttpClient, type SynclineHttpClientOptions } from "./http/http_client.ts";
export type { StorageId, UploadOptions } from "./http/upload.ts";
export { AccountError } from "./accounts/account_calls.ts";
export type {
  AccountOptions,
  Accounts,
  EmailProof,
  EmailRequest,
  RedirectResult,
  SignInWays,
} from "./accounts/accounts.ts";
export {
  type OwnAccount,
  ownAccount,
  ownIdentities,
  type OwnIdentity,
  type OwnSession,
  ownSessions,
} from "./accounts/own_account.ts";
export type { TokenStorage } from "./accounts/account_session.ts";
export { ClientClosedError, ConnectionLostError, FunctionError } from "./errors.ts";
export type { Clock } from "./clock.ts";
export type { ConnectionPhase } from "./connection/connection.ts";
export type { AuthState, FetchToken, OnAuthChange } from "./accounts/auth.ts";
export type { OptimisticStore } from "./queries/optimistic.ts";
export type { WebSocketFactory, WebSocketLike } from "./connection/socket_driver.ts";
export { anyApi, type ApiFromModules, createApi, type NotCallable } from "../protocol/api_reference.ts";
export {
  type FunctionKind,
  type FunctionReference,
  functionReference,
} from "../protocol/function_reference.ts";
export type {
  ArgsOf,
  CallArgs,
  FunctionName,
  PassedArgs,
  Register,
  ResultOf,
} from "../protocol/client_function_names.ts";
