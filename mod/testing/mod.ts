/**
 * `syncline/test`: tests an app's functions on the real engine.
 *
 * @module
 */
export { createTestServer, type TestServer } from "./test_server.ts";
export type {
  ModelOf,
  SignedInUser,
  TestModules,
  TestServerOptions,
  TestUser,
  UploadOptions,
} from "./test_types.ts";
export type { TestCaller } from "./test_caller.ts";
export type { TestSubscription } from "./test_subscription.ts";
export { FunctionError } from "../client/mod.ts";
