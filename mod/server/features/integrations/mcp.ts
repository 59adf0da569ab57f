/** `/api/mcp` and `_admin/mcp:handle`: the MCP server. Its code is loaded with the first request. */
import { Hono } from "hono";
import { z } from "zod";
import { isFollower } from "../../../config/config.ts";
import { VERSION } from "../../../config/version.ts";
import { MethodNotAllowedError, ServiceError, UserError } from "../../../errors.ts";
import { anonymous } from "../../../functions/identity.ts";
import { internalMainAction } from "../../../functions/main_actions.ts";
import { readJsonBody } from "../../../kit/request_body.ts";
import { mcpLimits } from "../../../mcp/limits.ts";
import type { McpCaller, McpEndpoint, McpSources } from "../../../mcp/mod.ts";
import type { AuditLog } from "../../../ops/admin/mod.ts";
import { type ExecutionLog, logPage } from "../../../ops/log/mod.ts";
import { type AdminEnv, adminGuard } from "../../../ops/mod.ts";
import { DocsPages } from "../../docs/docs_pages.ts";
import type { Feature, FeatureContext } from "../../feature.ts";
import type { AccountsFeature } from "../accounts.ts";
import { verifyWith } from "../admin.ts";
import type { DeployFeature } from "../deploy.ts";
import type { StatsFeature } from "../stats.ts";

interface McpParts {
  readonly accounts: Pick<AccountsFeature, "authenticator">;
  readonly steering: { readonly audit: AuditLog };
  readonly deploy: Pick<DeployFeature, "routesOptions">;
  readonly executionLog: ExecutionLog | null;
  readonly stats: Pick<StatsFeature, "read">;
}

/** Messages from the command line, which authenticates by access to the local socket. */
const handleArgs = z.strictObject({ message: z.unknown(), write: z.boolean() });

export function startMcp(context: FeatureContext, parts: McpParts): Feature {
  const { config, clientOf } = context;
  let loading: Promise<McpEndpoint> | null = null;
  const load = () => loading ??= openEndpoint(context, parts);
  const respond = async (request: Request, body: unknown, caller: McpCaller) => {
    // Each call is audited, which a server that only reads cannot do.
    if (isFollower({ follow: config.follow })) throw new ServiceError("read_only");
    return await (await load()).respond(request, { body, caller });
  };
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(parts.accounts.authenticator)));
  app.post("/", async (c) => {
    const body = await readJsonBody(c.req.raw, z.unknown(), { bytesMax: mcpLimits.bodyBytesMax });
    return await respond(c.req.raw, body, {
      admin: c.get("adminId"),
      session: c.get("sessionId"),
      address: clientOf(c),
      write: c.req.query("write") === "true",
      confirmAccess: c.get("confirmAccess"),
    });
  });
  app.all("/", () => {
    throw new MethodNotAllowedError("POST, OPTIONS");
  });
  return {
    routes: [{ at: "/api/mcp", app: new Hono().route("/", app) }],
    actions: new Map([[
      "_admin/mcp:handle",
      internalMainAction(handleArgs, async ({ message, write }) => {
        const request = new Request("http://localhost/api/mcp", { method: "POST", headers: MCP_HEADERS });
        const caller = { admin: "", session: null, write, confirmAccess: () => Promise.resolve() };
        const response = await respond(request, message, caller);
        return { status: response.status, text: await response.text() };
      }),
    ]]),
  };
}

const MCP_HEADERS = { "Accept": "application/json, text/event-stream", "Content-Type": "application/json" };

async function openEndpoint(context: FeatureContext, parts: McpParts): Promise<McpEndpoint> {
  const { McpEndpoint } = await import("../../../mcp/mod.ts");
  const { steering: { audit } } = parts;
  return new McpEndpoint({
    sources: sourcesOf(context, parts),
    version: VERSION,
    record: ({ caller: { admin, session, address }, tool, args, outcome }) =>
      audit.record({
        admin,
        session,
        action: `mcp:${tool}`,
        args: { ...args, ...(admin === "" && { by: "command line" }) },
        outcome,
        ...(address !== undefined && { address }),
      }),
  });
}

function sourcesOf(
  { host, port }: Pick<FeatureContext, "host" | "port">,
  { deploy: { routesOptions: { deployments } }, executionLog, stats }: McpParts,
): McpSources {
  const docs = new DocsPages();
  const textOf = async (path: string) => await (await docs.respond(path))?.text() ?? null;
  return {
    async call(path, args) {
      const call = { udfPath: path, args, identity: anonymous, origin: "system" } as const;
      const outcome = host.info(path)?.kind === "query" ? await port.query(call) : await port.act(call);
      if (outcome.ok) return JSON.parse(outcome.value);
      const { message, data } = outcome.error;
      throw data === null ? new Error(message) : new UserError(data.code, message, data.data);
    },
    async logs(parameters) {
      if (executionLog === null) throw new ServiceError("not_found", "The execution log is disabled");
      return await logPage(executionLog, parameters, Date.now());
    },
    stats: () => stats.read(),
    deploys: () => deployments.list(),
    compareDeploy: (hash, { admin, confirmAccess }) =>
      deployments.rollBack(hash, { by: admin, callerId: admin, confirmAccess, dryRun: true }),
    docs: {
      index: async () => await textOf("llms.txt") ?? "",
      page: (name) => textOf(`${name}.md`),
      find: (words) => docs.find(words),
    },
  };
}
