/** Answers MCP messages. Each request is complete in itself, so the server keeps no sessions. */
import { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import { mcpLimits } from "./limits.ts";
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "./sdk/sdk.js";
import { dataTools } from "./tools/data_tools.ts";
import { functionTools } from "./tools/function_tools.ts";
import { keyTools } from "./tools/key_tools.ts";
import { operationTools } from "./tools/operation_tools.ts";
import type { McpCaller, McpSources, Tool } from "./tools/tool.ts";

/** A tool call for the audit log. */
export interface McpCallRecord {
  readonly caller: McpCaller;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** `ok`, or the error code. */
  readonly outcome: string;
}

export interface McpEndpointOptions {
  readonly sources: McpSources;
  /** Called after each tool call. Never rejects. */
  readonly record: (call: McpCallRecord) => Promise<void>;
  readonly version: string;
}

const INSTRUCTIONS =
  "Tools for the app and data of one Syncline server. Call read_documentation before you write functions for it.";

const tools = byName([...dataTools, ...functionTools, ...operationTools]);
const toolsOfKeys = byName(keyTools);

function byName(list: readonly Tool[]): ReadonlyMap<string, Tool> {
  return new Map(list.map((tool) => [tool.name, tool]));
}

function toolsOf({ key }: McpCaller): ReadonlyMap<string, Tool> {
  return key === undefined ? tools : toolsOfKeys;
}

export class McpEndpoint {
  readonly #options: McpEndpointOptions;
  /** Counted separately, so that programs with keys do not lock administrators out. */
  readonly #callsInProgress = { administrators: 0, keys: 0 };

  constructor(options: McpEndpointOptions) {
    this.#options = options;
  }

  /** Answers a `POST` of the streamable HTTP transport, whose body was parsed already. */
  async respond(request: Request, { body, caller }: {
    readonly body: unknown;
    readonly caller: McpCaller;
  }): Promise<Response> {
    const server = new McpServer(
      { name: "syncline", version: this.#options.version },
      { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: toolList(caller) }));
    server.setRequestHandler(
      CallToolRequestSchema,
      ({ params }) => this.#call(params.name, params.arguments ?? {}, caller),
    );
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    try {
      return await transport.handleRequest(request, { parsedBody: withoutCancellations(body) });
    } finally {
      await server.close();
    }
  }

  async #call(name: string, given: unknown, caller: McpCaller): Promise<ToolAnswer> {
    const tool = toolsOf(caller).get(name);
    if (tool === undefined) return failure(`There is no tool "${name}"`);
    const parsed = tool.args.safeParse(given);
    const args: Record<string, unknown> = parsed.success ? parsed.data : {};
    let outcome = "ok";
    try {
      if (!parsed.success) throw new UserError("bad_request", z.prettifyError(parsed.error));
      return answer(await this.#run(tool, args, caller));
    } catch (error) {
      const isExpected = error instanceof ServiceError || error instanceof UserError;
      outcome = isExpected ? error.code : "failed";
      return failure(error instanceof Error ? error.message : String(error));
    } finally {
      const noted = Object.fromEntries(
        tool.noted.filter((arg) => args[arg] !== undefined).map((arg) => [arg, args[arg]]),
      );
      await this.#options.record({ caller, tool: name, args: noted, outcome });
    }
  }

  async #run(tool: Tool, args: Readonly<Record<string, unknown>>, caller: McpCaller): Promise<unknown> {
    if (tool.writes && !caller.write) {
      throw new UserError("read_only", "This connection is read-only: it was set up without write access");
    }
    const counts = this.#callsInProgress;
    const group = caller.key === undefined ? "administrators" : "keys";
    if (counts[group] >= mcpLimits.callsMax) throw new ServiceError("overloaded");
    counts[group]++;
    try {
      await caller.confirmAccess();
      return await tool.run(args, this.#options.sources, caller);
    } finally {
      counts[group]--;
    }
  }
}

/**
 * Drops the notifications of a batch with requests. A cancellation would leave its request, and therefore the batch,
 * without an answer.
 */
function withoutCancellations(body: unknown): unknown {
  if (!Array.isArray(body)) return body;
  const requests = body.filter((message) => message?.id !== undefined);
  return requests.length === 0 ? body : requests;
}

interface ToolAnswer {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly isError?: true;
  readonly [key: string]: unknown;
}

function toolList(caller: McpCaller): object[] {
  return [...toolsOf(caller).values()].filter(({ writes }) => caller.write || !writes)
    .map(({ name, description, args, writes }) => ({
      name,
      description,
      inputSchema: z.toJSONSchema(args, { io: "input" }),
      annotations: { readOnlyHint: !writes, destructiveHint: writes, openWorldHint: false },
    }));
}

function answer(value: unknown): ToolAnswer {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return { content: [{ type: "text", text: bounded(text) }] };
}

function failure(message: string): ToolAnswer {
  return { content: [{ type: "text", text: bounded(message) }], isError: true };
}

function bounded(text: string): string {
  const { answerCharsMax } = mcpLimits;
  if (text.length <= answerCharsMax) return text;
  const rest = text.length - answerCharsMax;
  return `${text.slice(0, answerCharsMax)}\n… cut: ${rest} more characters. Ask for less.`;
}
