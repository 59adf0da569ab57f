/** `/api/admin/functions`: deploys, stored versions, rollbacks and environment variables. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readJsonBody } from "../../kit/request_body.ts";
import type { AdminEnv } from "../admin/admin_guard.ts";
import { deployLimits } from "../limits.ts";
import type { Deployments, DeployOptions } from "./deployments.ts";
import { variableChanges, type Variables } from "./variables.ts";

export interface DeployRoutesOptions {
  readonly deployments: Pick<Deployments, "list" | "deploy" | "openBundle" | "rollBack">;
  readonly variables: Pick<Variables, "list" | "set">;
}

/** Paths below `/api/admin` that accept deploy keys. */
export const deployPath = /^\/api\/admin\/functions(?:\/versions|\/rollback|\/env)?$/;

/** One line. */
const messageText = z.string().trim().max(deployLimits.messageCharsMax).regex(
  /^\P{Cc}*$/u,
  "expected one line without control characters",
);

const rollbackBody = z.strictObject({
  hash: z.string().nullable().default(null),
  dryRun: z.boolean().default(false),
  message: messageText.optional(),
});

/** Header of a bundle with the functions folder in the names of its sources, percent-encoded. */
const FUNCTIONS_HEADER = "Syncline-Functions-Folder";

export function deployRoutes({ deployments, variables }: DeployRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.put("/functions", async (c) => {
    const dryRun = switchOf("dryRun", c.req.query("dryRun"));
    const keepFrontend = switchOf("keepFrontend", c.req.query("keepFrontend"));
    const message = messageOf(c.req.query("message"));
    if (dryRun) c.set("noted", { dryRun });
    const result = await deployments.deploy(c.req.raw, { ...callerOf(c), dryRun, keepFrontend, ...message });
    if (!dryRun) c.set("noted", { hash: result.hash, previous: result.previous, ...message });
    return c.json(result);
  });
  app.get("/functions/versions", async (c) => c.json(await deployments.list()));
  app.get("/functions/versions/:hash/bundle", async (c) => {
    const { file, functions } = await deployments.openBundle(c.req.param("hash"));
    const headers = {
      "Content-Type": "text/javascript; charset=utf-8",
      [FUNCTIONS_HEADER]: encodeURIComponent(functions),
    };
    if (c.req.method === "GET") return c.body(file.readable, 200, headers);
    // The framework drops the body of a HEAD response without canceling it.
    file.close();
    return c.body(null, 200, headers);
  });
  app.post("/functions/rollback", async (c) => {
    const body = await readJsonBody(c.req.raw, rollbackBody, { bytesMax: 4 * 1024 });
    const { hash, dryRun } = body;
    const message = body.message ? { message: body.message } : {};
    c.set("noted", { hash: hash ?? "", ...(dryRun && { dryRun }) });
    const result = await deployments.rollBack(hash, { ...callerOf(c), dryRun, ...message });
    if (!dryRun) c.set("noted", { hash: result.hash, previous: result.previous, ...message });
    return c.json(result);
  });
  app.patch("/functions/env", async (c) => {
    const changes = await readJsonBody(c.req.raw, variableChanges, {
      bytesMax: 4 * deployLimits.variablesMax * deployLimits.variableCharsMax,
    });
    c.set("noted", { variables: Object.keys(changes).join(", ") });
    return c.json(await variables.set(changes));
  });
  app.get("/functions/env", (c) => {
    // Deploy keys may set variables, but only administrators may read them.
    if (c.get("deployKey") !== undefined) throw new ServiceError("invalid_token");
    return c.json({ variables: variables.list() });
  });
  return app;
}

function callerOf(c: Context<AdminEnv>): Omit<DeployOptions, "dryRun"> {
  return { by: c.get("calledBy"), callerId: c.get("adminId"), confirmAccess: c.get("confirmAccess") };
}

function messageOf(text: string | undefined): { readonly message?: string } {
  const parsed = messageText.safeParse(text ?? "");
  if (!parsed.success) throw new ServiceError("bad_request", `message: ${parsed.error.issues[0]?.message}`);
  return parsed.data === "" ? {} : { message: parsed.data };
}

function switchOf(name: string, text: string | undefined): boolean {
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw new ServiceError("bad_request", `${name} is true or false`);
}
