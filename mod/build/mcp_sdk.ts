/**
 * `deno task build:mcp`: prints the server part of the MCP SDK as one module. The part uses zod
 * only, while the package depends on 90 others.
 */
import { packageModule } from "./package_module.ts";

const ENTRY = `
export { Server as McpServer } from "@modelcontextprotocol/sdk/server/index.js";
export { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
export { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
`;

/** For forms that a server shows to users, and for tools defined with zod: both are unused here. */
const UNUSED = "export class AjvJsonSchemaValidator {}; export const zodToJsonSchema = null;";

/** Returns the source of the module. */
export function mcpSdk(): Promise<string> {
  return packageModule({
    task: "build:mcp",
    package: "@modelcontextprotocol/sdk",
    license: new URL("../../LICENSE", import.meta.resolve("@modelcontextprotocol/sdk/types.js")),
    entry: ENTRY,
    options: {
      plugins: [{
        name: "unused",
        setup({ onResolve, onLoad }) {
          onResolve(
            { filter: /ajv-provider\.js$|^zod-to-json-schema$/ },
            () => ({ path: "unused", namespace: "unused" }),
          );
          onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: UNUSED }));
        },
      }],
    },
  });
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await mcpSdk()));
