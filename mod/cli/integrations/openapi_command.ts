/** The command `openapi`: prints the OpenAPI document of the app on a running server. */
import { VERSION } from "../../config/version.ts";
import type { FunctionFacts } from "../../functions/api/service.ts";
import type { CommandSpec } from "../command_line.ts";
import { withRunningServer } from "../running_server.ts";

export const openApiCommand: CommandSpec = {
  name: "openapi",
  description: "Print the OpenAPI 3.1 document of the app on a running server",
  run: ({ data, publicUrl }) =>
    withRunningServer(data, async (call) => {
      const { openApiDocument } = await import("../../openapi/mod.ts");
      const functions = await call("_admin/functions:list", {}) as readonly FunctionFacts[];
      const document = openApiDocument({ functions, version: VERSION, serverUrl: publicUrl ?? "/" });
      return JSON.stringify(document, null, 2);
    }),
};
