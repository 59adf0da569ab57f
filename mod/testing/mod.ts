/**
 * `syncline/test`: an app's functions in the app's own tests, on the real engine.
 *
 * @module
 */
export { createTestServer } from "./test_server.ts";
export type { ModelOf, SignedInUser, TestServer, TestUser } from "./test_server.ts";
export type { TestCaller } from "./test_caller.ts";
export type { UploadOptions } from "./test_storage.ts";
export type { TestSubscription } from "./test_subscription.ts";
export { FunctionError } from "../client/mod.ts";
export type { TestModules, TestServerOptions } from "./load_test_app.ts";
