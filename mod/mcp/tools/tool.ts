/** The type of a tool, and what tools use of the server. */
import type { z } from "zod";
import type { Caller } from "../../functions/host_port.ts";
import type { Identity } from "../../functions/identity.ts";

export interface McpSources {
  /** Calls a function for administrators. Throws a `UserError` or another error. */
  call(path: string, args: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** Calls a function of the app with an API key, like a client. Throws a `UserError` or another error. */
  callAsKey(key: KeyCaller, call: {
    readonly kind: "query" | "mutation" | "action";
    readonly path: string;
    readonly args: Record<string, unknown>;
  }): Promise<unknown>;
  /** Reads a page of the execution log; parameters as in `GET /api/admin/logs`. */
  logs(parameters: URLSearchParams): Promise<unknown>;
  /** As in `GET /api/admin/stats`. */
  stats(): Promise<unknown>;
  /** The versions of the code that the server has. */
  deploys(): Promise<unknown>;
  /** Returns the changes of a dry run that serves a version. */
  compareDeploy(hash: string, caller: McpCaller): Promise<unknown>;
  readonly docs: {
    /** The list of pages, in the format of llmstxt.org. */
    index(): Promise<string>;
    /** A page as Markdown; `null` if there is none. */
    page(name: string): Promise<string | null>;
    find(words: string): Promise<readonly object[]>;
  };
}

/** An API key, and its place in fair queues. */
export interface KeyCaller {
  readonly identity: Identity;
  readonly caller: Caller;
}

/** The authenticated caller of a request. */
export interface McpCaller {
  /** ID of the administrator; empty for the owner of the data folder and API keys. */
  readonly admin: string;
  /** Set for programs with an API key, which have tools of their own. */
  readonly key?: KeyCaller;
  readonly session: string | null;
  /** Address of the client. */
  readonly address?: string;
  /** Whether tools that change data are available. */
  readonly write: boolean;
  /** Throws `invalid_token` if the session has ended. */
  readonly confirmAccess: () => Promise<void>;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly args: z.ZodObject;
  /** Tools that change data are available to callers with write access only. */
  readonly writes: boolean;
  /** Arguments for the audit log, which must not contain documents or search terms. */
  readonly noted: readonly string[];
  /** Returns a text, or a value to be sent as JSON. */
  run(args: Readonly<Record<string, unknown>>, sources: McpSources, caller: McpCaller): Promise<unknown>;
}

/** Defines a tool that reads, with typed arguments. */
export function readTool<Args extends z.ZodObject>(
  tool: Omit<Tool, "args" | "run" | "writes" | "noted"> & {
    readonly args: Args;
    readonly noted?: readonly (keyof z.output<Args> & string)[];
    readonly run: (args: z.output<Args>, sources: McpSources, caller: McpCaller) => Promise<unknown>;
  },
): Tool {
  return { noted: [], ...tool, writes: false, run: tool.run as Tool["run"] };
}

/** Defines a tool that changes data. */
export function writeTool<Args extends z.ZodObject>(tool: Parameters<typeof readTool<Args>>[0]): Tool {
  return { ...readTool(tool), writes: true };
}
