/** The MCP server: tools for agents. Loaded with the first request. */
export { type McpCallRecord, McpEndpoint, type McpEndpointOptions } from "./endpoint.ts";
export type { McpCaller, McpSources } from "./tools/tool.ts";
