/** `/api/mcp` and `_admin/mcp:handle`: the MCP server. Its code is loaded with the first request. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { isApiKey } from "../../../auth/mod.ts";
import { isFollower } from "../../../config/config.ts";
import { VERSION } from "../../../config/version.ts";
import { MethodNotAllowedError, ServiceError, UserError } from "../../../errors.ts";
import { anonymous } from "../../../functions/identity.ts";
import { refuseKey } from "../../../functions/key_scope.ts";
import { internalMainAction } from "../../../functions/main_actions.ts";
import { type Outcome, publicError } from "../../../functions/outcome.ts";
import { readJsonBody } from "../../../kit/request_body.ts";
import { mcpLimits } from "../../../mcp/limits.ts";
import type { McpCaller, McpEndpoint, McpSources } from "../../../mcp/mod.ts";
import type { AuditLog } from "../../../ops/admin/mod.ts";
import { type ExecutionLog, logPage } from "../../../ops/log/mod.ts";
import { type AdminEnv, adminGuard } from "../../../ops/mod.ts";
import { callerOf, guestCaller, refuseCall } from "../../../sync/mod.ts";
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
  const bodyOf = (request: Request) =>
    readJsonBody(request, z.unknown(), { bytesMax: mcpLimits.bodyBytesMax });
  const { authenticator } = parts.accounts;
  const app = new Hono<AdminEnv>();
  app.post("/", async (c, next) => {
    const token = BEARER.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    if (!isApiKey(token)) return await next();
    const caller = await keyCaller(c, { token, authenticator, address: clientOf(c) });
    c.header("Cache-Control", "no-store");
    return await respond(c.req.raw, await bodyOf(c.req.raw), caller);
  });
  app.use("*", adminGuard(verifyWith(authenticator)));
  app.post("/", async (c) => {
    return await respond(c.req.raw, await bodyOf(c.req.raw), {
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

const BEARER = /^Bearer +(\S+) *$/i;

/** The caller with an API key. Keys of users are refused: they would list functions and fill the audit log. */
async function keyCaller(
  c: Context<AdminEnv>,
  { token, authenticator, address }: {
    readonly token: string;
    readonly authenticator: AccountsFeature["authenticator"];
    readonly address: string;
  },
): Promise<McpCaller> {
  const guest = guestCaller(address);
  const verify = async () => {
    const verification = await authenticator.verify(token, guest.blame);
    const identity = verification.ok ? verification.identity : null;
    if (identity?.key === undefined || identity.userId !== null) throw new ServiceError("invalid_token");
    return identity;
  };
  const identity = await verify();
  return {
    admin: "",
    key: { identity, caller: callerOf(identity, guest) },
    session: null,
    address,
    write: c.req.query("write") === "true",
    confirmAccess: async () => void await verify(),
  };
}

const MCP_HEADERS = { "Accept": "application/json, text/event-stream", "Content-Type": "application/json" };

async function openEndpoint(context: FeatureContext, parts: McpParts): Promise<McpEndpoint> {
  const { McpEndpoint } = await import("../../../mcp/mod.ts");
  const { steering: { audit } } = parts;
  return new McpEndpoint({
    sources: sourcesOf(context, parts),
    version: VERSION,
    record: ({ caller: { admin, key, session, address }, tool, args, outcome }) =>
      audit.record({
        admin,
        session,
        action: `mcp:${tool}`,
        args: { ...args, ...(admin === "" && { by: callerName(key) }) },
        outcome,
        ...(address !== undefined && { address }),
      }),
  });
}

function callerName(key: McpCaller["key"]): string {
  return key === undefined ? "command line" : `API key ${key.identity.key?.name}`;
}

function sourcesOf(
  { config: { dev }, host, port }: Pick<FeatureContext, "config" | "host" | "port">,
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
    async callAsKey({ identity, caller }, { kind, path, args }) {
      const call = { udfPath: path, args, identity, caller, origin: "client" } as const;
      const run = {
        query: () => port.query(call),
        mutation: async () => (await port.mutate(call)).outcome,
        action: () => port.act(call),
      };
      const outcome: Outcome = refuseCall(call) ?? refuseKey(identity, kind, path) ?? await run[kind]();
      if (outcome.ok) return { value: JSON.parse(outcome.value) };
      const { errorMessage, errorData } = publicError(outcome.error, { dev });
      throw errorData === null ? new Error(errorMessage) : new UserError(errorData.code, errorMessage);
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
