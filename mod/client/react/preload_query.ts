/** Runs a query for a page that is rendered on a server. Without hooks, so that server components can call it. */
import { functionPath, functionReference } from "../../protocol/function_reference.ts";
import type { CallArgs, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import type { SynclineHttpClient } from "../http/http_client.ts";

/** A query and its result: plain JSON to pass from the server to the page. */
export interface Preloaded<Name> {
  readonly path: string;
  readonly args: Record<string, unknown>;
  readonly value: ResultOf<Name>;
}

/**
 * Runs a query on the server that renders the page. Rejects with `FunctionError` if it fails.
 *
 * @example
 * ```tsx
 * const list = await preloadQuery(new SynclineHttpClient(server), api.messages.list, { channel });
 * const html = renderToString(<SynclineProvider client={null}><Messages list={list} /></SynclineProvider>);
 * // In Messages: const messages = usePreloadedQuery(list);
 * ```
 */
export async function preloadQuery<Name extends FunctionName<"query">>(
  client: SynclineHttpClient,
  query: Name,
  ...given: CallArgs<Name>
): Promise<Preloaded<Name>> {
  const path = functionPath(query);
  const args: Record<string, unknown> = given[0] ?? {};
  const value = await client.query(functionReference<"query", Record<string, unknown>, unknown>(path), args);
  return { path, args, value: value as ResultOf<Name> };
}
