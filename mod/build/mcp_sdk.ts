/**
 * `deno task build:mcp`: prints the server part of the MCP SDK as one module. The part uses zod
 * only, while the package depends on 90 others.
 */
import { build, stop } from "esbuild";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const ENTRY = `
export { Server as McpServer } from "@modelcontextprotocol/sdk/server/index.js";
export { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
export { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
`;

/** For forms that a server shows to users, and for tools defined with zod: both are unused here. */
const UNUSED = "export class AjvJsonSchemaValidator {}; export const zodToJsonSchema = null;";

/** Returns the source of the module. */
export async function mcpSdk(): Promise<string> {
  const license = await Deno.readTextFile(
    fileURLToPath(new URL("../../LICENSE", import.meta.resolve("@modelcontextprotocol/sdk/types.js"))),
  );
  const { outputFiles: [file] } = await build({
    stdin: { contents: ENTRY, resolveDir: "/" },
    bundle: true,
    format: "esm",
    target: "esnext",
    minifyWhitespace: true,
    legalComments: "none",
    banner: {
      js: `/* @ts-self-types="./sdk.d.ts" */\n/* Built by "deno task build:mcp" from the package ` +
        `@modelcontextprotocol/sdk:\n\n${license.trim()}\n*/`,
    },
    plugins: [{
      name: "deno",
      setup({ onResolve, onLoad }) {
        onResolve(
          { filter: /ajv-provider\.js$|^zod-to-json-schema$/ },
          () => ({ path: "unused", namespace: "unused" }),
        );
        onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: UNUSED }));
        onResolve({ filter: /^zod(?:\/|$)/ }, ({ path }) => ({ path, external: true }));
        onResolve({ filter: /^[^./]/ }, ({ path, importer }) => ({
          path: importer === "<stdin>"
            ? fileURLToPath(import.meta.resolve(path))
            : createRequire(importer).resolve(path),
        }));
      },
    }],
    write: false,
    logLevel: "warning",
  });
  await stop();
  if (file === undefined) throw new Error("esbuild produced no output");
  // The names of modules contain the paths of the machine that builds them.
  return file.text.replaceAll(/"(?:\.\.\/)+[^"]*"(?=\(exports)/g, '"module"');
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await mcpSdk()));
