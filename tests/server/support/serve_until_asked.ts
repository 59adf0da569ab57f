/** Loaded before the server: a runtime that closes its port when `/end-of-port` is requested. */
const serve = Deno.serve as (options: Deno.ServeTcpOptions, handler: Deno.ServeHandler) => Deno.HttpServer;
const serveUntilAsked: typeof serve = (options, handler) => {
  const server = serve(options, (request, info) => {
    if (!request.url.endsWith("/end-of-port")) return handler(request, info);
    // The runtime ends a server whose upgrade is not answered by its own response.
    Deno.upgradeWebSocket(request);
    return new Response();
  });
  return server;
};
Object.defineProperty(Deno, "serve", { value: serveUntilAsked });
