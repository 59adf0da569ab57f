/** Messages between a test and its server process: one line of JSON each. A prefix separates them from printed output. */
import type { FunctionCall } from "../../functions/host_port.ts";
import type { Outcome } from "../../functions/outcome.ts";
import type { FunctionKind } from "../../protocol/function_reference.ts";
import type { ErrorData } from "../../protocol/server_messages.ts";
import type { TestUser } from "../test_types.ts";
import type { CallerFacts } from "../test_caller.ts";
import type { Chain, EncodedValue } from "./chains.ts";

/** Prefix of message lines from the server process. */
export const MESSAGE_PREFIX = "\u0001";

/** An HTTP request or response. Bodies are base64. */
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

/** Requests to the process and their responses. `server`, `work` and `socket` are numbers assigned by the test. */
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
  /** Starts a callback as a mutation; responds when it has finished. */
  work: { args: { server: number; work: number }; result: unknown };
  /** Calls a method of the callback's `ctx`. With `list`, collects the items it iterates over. */
  step: { args: { work: number; chain: Chain; list: boolean }; result: EncodedValue };
  workEnds: { args: { work: number; value?: EncodedValue; error?: WireError }; result: null };
  socketOpen: { args: { server: number; socket: number }; result: null };
  socketSend: { args: { socket: number; text: string }; result: null };
  socketClose: { args: { socket: number }; result: null };
}
export type OperationName = keyof Operations;

export interface ProcessRequest<Name extends OperationName = OperationName> {
  readonly id: number;
  readonly name: Name;
  readonly args: Operations[Name]["args"];
}

/** Messages from the process. `now` is the server's clock at that time. */
export type ProcessMessage =
  | { readonly answer: number; readonly now?: number; readonly value: unknown }
  | { readonly answer: number; readonly now?: number; readonly error: WireError }
  | { readonly work: number }
  | { readonly socket: number; readonly text: string }
  | { readonly socket: number; readonly closed: { readonly code: number; readonly reason: string } };

export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  /** Fields of a `FunctionError`. */
  readonly call?: { readonly udfPath: string; readonly errorData: ErrorData };
}
