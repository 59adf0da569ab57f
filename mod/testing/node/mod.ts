/**
 * `syncline/test` of the npm package: tests an app's functions on the real engine.
 *
 * @module
 */
export { createTestServer, type NodeTestServerOptions, type TestServer } from "./node_test_server.ts";
export type { ModelOf, SignedInUser, TestUser, UploadOptions } from "../test_types.ts";
export type { TestCaller } from "../test_caller.ts";
export type { TestSubscription } from "../test_subscription.ts";
export { FunctionError } from "../../client/mod.ts";
