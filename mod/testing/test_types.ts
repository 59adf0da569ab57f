/** What tests say to a test server, wherever it runs. */
import type { AnyDataModel, DataModelOf, Id, Schema } from "../functions/api/service.ts";
import type { TestCaller } from "./test_caller.ts";

/** Modules by path, as `import * as messages from "./functions/messages.ts"` gives them; `index` is the root. */
export type TestModules<S extends Schema = Schema> = Readonly<Record<string, object>> & {
  readonly schema?: { readonly default: S };
};

export interface TestServerOptions<S extends Schema = Schema> {
  /** Folder of the app's functions: an absolute path or a `file:` URL. */
  readonly functionsDir?: string | URL;
  /** The app's modules instead of a folder; they type `run` by the schema among them. */
  readonly modules?: TestModules<S>;
  /** Where the clock starts, milliseconds since the epoch or a date; the first moment of 2030 unless told. */
  readonly now?: number | Date;
  /** What actions see as `ctx.env`; nothing of the process's own environment is there. */
  readonly env?: Readonly<Record<string, string>>;
  /** Time queries and mutations have, in milliseconds of the machine's clock; as in the server unless told. */
  readonly callTimeoutMs?: number;
  /** Whether callers are shown real error messages, as with `--dev`; they are unless told. */
  readonly dev?: boolean;
  /** Origins of pages that may use the API, as with `--allow-origin`; any unless told. Requests say theirs in `Origin`. */
  readonly allowOrigins?: readonly string[];
  /** Largest upload in bytes, as with `--upload-max-bytes`; as in the server unless told. */
  readonly uploadMaxBytes?: number;
}

export interface TestUser {
  /** The same address is the same user. */
  readonly email?: string;
  readonly name?: string;
  readonly emailVerified?: boolean;
  /** Fields of the app's profile of users that are others than by default; of somebody new. */
  readonly profile?: Readonly<Record<string, unknown>>;
}

/** A caller whose id is known. */
export type SignedInUser = TestCaller & { readonly userId: Id<"_users"> };

/** The tables `run` knows: those of the schema among the modules, or any. */
export type ModelOf<S extends Schema> = Schema extends S ? AnyDataModel : DataModelOf<S>;

/** What is said of a file that a test uploads. */
export interface UploadOptions {
  /** The original file name; that of a `File` unless told. */
  readonly name?: string;
  /** Its type unless the blob has one. */
  readonly contentType?: string;
}
