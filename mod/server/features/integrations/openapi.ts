/** `GET /api/openapi.json`: the OpenAPI document of the app. Its generator is loaded with the first request. */
import { Hono } from "hono";
import { VERSION } from "../../../config/version.ts";
import { ServiceError } from "../../../errors.ts";
import { anonymous } from "../../../functions/identity.ts";
import { type AdminEnv, adminGuard } from "../../../ops/mod.ts";
import type { Feature, FeatureContext } from "../../feature.ts";
import type { AccountsFeature } from "../accounts.ts";
import { verifyWith } from "../admin.ts";

export function startOpenApi(
  { config: { publicOpenApi, publicUrl }, port }: Pick<FeatureContext, "config" | "port">,
  { accounts: { authenticator } }: { readonly accounts: Pick<AccountsFeature, "authenticator"> },
): Feature {
  /** The last document, with the list of functions that it describes. */
  let made = { functions: "", text: "" };
  const app = new Hono<AdminEnv>();
  if (!publicOpenApi) app.use("*", adminGuard(verifyWith(authenticator)));
  app.get("/", async (c) => {
    const call = {
      udfPath: "_admin/functions:list",
      args: {},
      identity: anonymous,
      origin: "system",
    } as const;
    const outcome = await port.query(call);
    if (!outcome.ok) throw new ServiceError("unavailable", outcome.error.message);
    if (outcome.value !== made.functions) {
      const { openApiDocument } = await import("../../../openapi/mod.ts");
      const functions = JSON.parse(outcome.value);
      const document = openApiDocument({ functions, version: VERSION, serverUrl: publicUrl ?? "/" });
      made = { functions: outcome.value, text: JSON.stringify(document) };
    }
    return c.body(made.text, 200, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  });
  return { routes: [{ at: "/api/openapi.json", app: new Hono().route("/", app) }] };
}
