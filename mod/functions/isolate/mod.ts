/** Public API of the isolate code, for functions of the service and for apps under test, which run in the test's process. */
export type { DeletedSome, ImportApi } from "./ctx/import_api.ts";
export { isFailure, markHandled, markUnhandled } from "./runs/unhandled_failures.ts";
export { callError, setFunctionsUrl } from "./runs/call_errors.ts";
export { frozenNow, marked, seededRandom } from "./process/determinism.ts";
export { currentCall } from "./runs/call.ts";
export { captureConsole } from "./ctx/log_api.ts";
export { type rateLimitFunctions, rateLimitModule, type UsedRateLimit } from "./ctx/rate_limit_api.ts";
export {
  type ActionEnvironment,
  runAction,
  runningAction,
  type SubCaller,
  withActionCtx,
} from "./runs/run_action.ts";
export { failWaitingHandler } from "./process/idle.ts";
export { type AppModule, assembleApp, fileUrl, loadApp, loadBundle, type LoadedApp } from "./app/loader.ts";
export { runMutation } from "./runs/run_mutation.ts";
export { runQuery } from "./runs/run_query.ts";
export type { LoadedFunction } from "./app/app.ts";
