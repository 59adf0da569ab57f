/** What a test and the process of its servers tell one another: a line of JSON each, told from what code prints by a mark. */
import type { FunctionCall } from "../../functions/host_port.ts";
import type { Outcome } from "../../functions/outcome.ts";
import type { FunctionKind } from "../../protocol/function_reference.ts";
import type { ErrorData } from "../../protocol/server_messages.ts";
import type { TestUser } from "../test_types.ts";
import type { CallerFacts } from "../test_caller.ts";
import type { Chain, Packed } from "./chains.ts";

/** Stands before each line of the servers' process that is a message. */
export const MARK = "\u0001";

/** A request or a response of HTTP; bodies are base64. */
export interface WireRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | null;
}
export interface WireResponse {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

/** What is asked of the process, with what it answers. `server`, `work` and `socket` are numbers that the test gives out. */
export interface Operations {
  open: {
    args: {
      server: number;
      functionsDir: string;
      now?: number;
      env?: Readonly<Record<string, string>>;
      callTimeoutMs?: number;
      dev?: boolean;
      allowOrigins?: readonly string[];
      uploadMaxBytes?: number;
    };
    result: null;
  };
  close: { args: { server: number }; result: null };
  run: { args: { server: number; kind: FunctionKind; call: FunctionCall }; result: Outcome };
  asUser: { args: { server: number; user: TestUser | string }; result: CallerFacts };
  asAdmin: { args: { server: number; email: string }; result: CallerFacts };
  endSession: { args: { server: number; sessionId: string }; result: null };
  advance: { args: { server: number; ms: number }; result: null };
  settled: { args: { server: number }; result: null };
  fetch: { args: { server: number; request: WireRequest }; result: WireResponse };
  upload: {
    args: { server: number; url: string; body: string; type: string; name?: string };
    result: string;
  };
  /** Begins work of the test as a mutation; answered when it has ended. */
  work: { args: { server: number; work: number }; result: unknown };
  /** Calls something of the work's `ctx`; `list` collects what it iterates over. */
  step: { args: { work: number; chain: Chain; list: boolean }; result: Packed };
  workEnds: { args: { work: number; value?: Packed; error?: WireError }; result: null };
  socketOpen: { args: { server: number; socket: number }; result: null };
  socketSend: { args: { socket: number; text: string }; result: null };
  socketClose: { args: { socket: number }; result: null };
}
export type OperationName = keyof Operations;

export interface Ask<Name extends OperationName = OperationName> {
  readonly id: number;
  readonly name: Name;
  readonly args: Operations[Name]["args"];
}

/** What the process says by itself, or in answer; `now` is the server's clock then. */
export type Told =
  | { readonly answer: number; readonly now?: number; readonly value: unknown }
  | { readonly answer: number; readonly now?: number; readonly error: WireError }
  | { readonly work: number }
  | { readonly socket: number; readonly text: string }
  | { readonly socket: number; readonly closed: { readonly code: number; readonly reason: string } };

export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  /** Of a `FunctionError`. */
  readonly call?: { readonly udfPath: string; readonly errorData: ErrorData };
}
