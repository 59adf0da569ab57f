/** Options and types shared by the test servers for Deno and Node. */
import type { AnyDataModel, DataModelOf, Id, Schema } from "../functions/api/service.ts";
import type { TestCaller } from "./test_caller.ts";

/** Modules by path, as in `import * as messages from "./functions/messages.ts"`; `index` is the root. */
export type TestModules<S extends Schema = Schema> = Readonly<Record<string, object>> & {
  readonly schema?: { readonly default: S };
};

export interface TestServerOptions<S extends Schema = Schema> {
  /** The app's functions folder: an absolute path or a `file:` URL. */
  readonly functionsDir?: string | URL;
  /** The app's modules instead of a folder. They type `run` with the schema among them. */
  readonly modules?: TestModules<S>;
  /** Start of the clock, as a date or milliseconds since the epoch. Default: 2030-01-01T00:00:00Z. */
  readonly now?: number | Date;
  /** Variables of `ctx.env`. The environment of the process is not visible. */
  readonly env?: Readonly<Record<string, string>>;
  /** Timeouts of queries and mutations in real milliseconds. Default: those of the server. */
  readonly callTimeoutMs?: number;
  /** Whether callers receive real error messages, as with `--dev`. Default: true. */
  readonly dev?: boolean;
  /** Page origins that may use the API, as with `--allow-origin`. Default: any. Requests pass theirs in `Origin`. */
  readonly allowOrigins?: readonly string[];
  /** Maximum upload size in bytes, as with `--upload-max-bytes`. Default: that of the server. */
  readonly uploadMaxBytes?: number;
}

export interface TestUser {
  /** Calls with the same address return the same user. */
  readonly email?: string;
  readonly name?: string;
  readonly emailVerified?: boolean;
  /** Profile fields of a new user that differ from the app's defaults. */
  readonly profile?: Readonly<Record<string, unknown>>;
}

/** A caller with a known user id. */
export type SignedInUser = TestCaller & { readonly userId: Id<"_users"> };

/** The tables known to `run`: those of the schema among the modules, or any. */
export type ModelOf<S extends Schema> = Schema extends S ? AnyDataModel : DataModelOf<S>;

/** Options of an upload in a test. */
export interface UploadOptions {
  /** Original file name. Default: the name of the `File`. */
  readonly name?: string;
  /** Content type, if the blob has none. */
  readonly contentType?: string;
}
