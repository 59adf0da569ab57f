/** The part of `@modelcontextprotocol/sdk` that `sdk.js` contains and the MCP server uses. */

interface ToolRequest {
  readonly params: { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> };
}

declare const requests: unique symbol;
/** The schema of a request. */
interface RequestSchema<Request> {
  readonly [requests]: Request;
}

export const CallToolRequestSchema: RequestSchema<ToolRequest>;
export const ListToolsRequestSchema: RequestSchema<object>;

/** Answers messages of one connection. */
export class McpServer {
  constructor(
    info: { readonly name: string; readonly version: string },
    options: { readonly capabilities: { readonly tools: object }; readonly instructions: string },
  );
  setRequestHandler<Request>(
    schema: RequestSchema<Request>,
    handler: (request: Request) => object | Promise<object>,
  ): void;
  connect(transport: WebStandardStreamableHTTPServerTransport): Promise<void>;
  close(): Promise<void>;
}

/** Streamable HTTP. Without sessions it answers one request. */
export class WebStandardStreamableHTTPServerTransport {
  constructor(options: { readonly enableJsonResponse: boolean });
  handleRequest(request: Request, options: { readonly parsedBody: unknown }): Promise<Response>;
}
