/** Runs a query once over HTTP, without a subscription. */
import { functionPath, type FunctionReference } from "../../../mod/protocol/function_reference.ts";
import { adminSession } from "./admin_session.ts";

/** Throws `RequestError` if the query fails. */
export async function queryOnce<Args, Result>(
  query: FunctionReference<"query", Args, Result>,
  args: NoInfer<Args>,
): Promise<Result> {
  const response = await adminSession.fetch("/api/query", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path: functionPath(query), args }),
  });
  return (await response.json() as { readonly value: Result }).value;
}
