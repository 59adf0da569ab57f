/** A query that is asked once, over HTTP: what it reads is not watched, and nothing on the socket waits for it. */
import { functionPath, type FunctionReference } from "../../../mod/protocol/function_reference.ts";
import { adminSession } from "./admin_session.ts";

/** Throws `RequestError` when it fails. */
export async function askOnce<Args, Result>(
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
