/** Answers the requests of a port from the backend that is served, or from the next one while the role changes. */
import { failureResponse } from "../kit/error_response.ts";
import type { Log } from "../kit/log.ts";
import type { AcceptedRequest, RequestGate } from "./http/request_gate.ts";
import { asStartingPage } from "./http/starting_page.ts";
import type { Connections } from "./net/connections.ts";
import type { Served, Serving } from "./serving.ts";

export interface RequestHandlerOptions {
  readonly gate: RequestGate;
  readonly serving: Serving;
  readonly connections: Pick<Connections, "trackRequest">;
  readonly log: Log;
}

export class RequestHandler {
  readonly #options: RequestHandlerOptions;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  /** `forwarded`: another process has checked its host. */
  respond(
    given: Request,
    info: Deno.ServeHandlerInfo,
    { forwarded = false }: { readonly forwarded?: boolean } = {},
  ): Response | Promise<Response> {
    const { gate, serving } = this.#options;
    const admitted = gate.check(given, { forwarded });
    if (admitted instanceof Response) {
      return serving.backend?.http.metrics?.requests.count("/", admitted) ?? admitted;
    }
    const { served, role } = serving;
    if (served !== null) return this.#respondFrom(served, admitted, info);
    if (admitted.path === "/api/health") {
      return Response.json({ status: role }, { status: 503, headers: { "Cache-Control": "no-store" } });
    }
    return this.#respondLater(admitted, info);
  }

  #respondFrom(
    { backend, router }: Served,
    { request, path, finish }: AcceptedRequest,
    info: Deno.ServeHandlerInfo,
  ): Response | Promise<Response> {
    const answer = backend.respond(request, info, () => router.fetch(request, info));
    if (answer instanceof Promise) this.#options.connections.trackRequest(request, info);
    return finish(backend.http.metrics?.requests.count(path, answer) ?? answer);
  }

  /** Answers a request that has waited for the next backend. */
  async #respondLater(admitted: AcceptedRequest, info: Deno.ServeHandlerInfo): Promise<Response> {
    const { connections, serving, log } = this.#options;
    connections.trackRequest(admitted.request, info);
    try {
      return await this.#respondFrom(await serving.nextServed(), admitted, info);
    } catch (error) {
      return asStartingPage(failureResponse(error, log), admitted.request, admitted.path);
    }
  }
}
