/** Declarations that `httpRouter()` accepts, and the route that a request gets. */
import assert from "node:assert/strict";
import { httpAction, httpRouter } from "syncline/server";
import { routeDefinitions } from "../../../mod/functions/api/http_router.ts";
import { RouteTable } from "../../../mod/functions/host/runners/route_table.ts";
import { appRoutes } from "../../../mod/functions/isolate/app/app_routes.ts";

const handler = httpAction(() => new Response());

function tableOf(routes: readonly (readonly [method: string, path: string])[]): RouteTable {
  const http = httpRouter();
  for (const [method, path] of routes) {
    const place = path.endsWith("*") ? { pathPrefix: path.slice(0, -1) } : { path };
    http.route({ method: method as "GET", handler, ...place } as Parameters<typeof http.route>[0]);
  }
  return new RouteTable(appRoutes(http).routes);
}

const table = tableOf([
  ["GET", "/"],
  ["GET", "/a"],
  ["POST", "/a"],
  ["GET", "/a/*"],
  ["GET", "/a/b/*"],
  ["GET", "/a/b/c"],
  ["PUT", "/*"],
  ["OPTIONS", "/a"],
  ["GET", "/déjà vu"],
]);

const requests: Record<string, readonly [method: string, pathname: string, key: string | null]> = {
  "the path": ["GET", "/a", "GET /a"],
  "its method": ["POST", "/a", "POST /a"],
  "a path before prefixes": ["GET", "/a/b/c", "GET /a/b/c"],
  "the longest prefix": ["GET", "/a/b/x", "GET /a/b/*"],
  "a shorter prefix": ["GET", "/a/x", "GET /a/*"],
  "the prefix itself": ["GET", "/a/", "GET /a/*"],
  "no route for the prefix without its slash's method": ["DELETE", "/a/x", null],
  "a prefix of everything": ["PUT", "/whatever", "PUT /*"],
  "HEAD as GET": ["HEAD", "/a", "GET /a"],
  "OPTIONS where there is one": ["OPTIONS", "/a", "OPTIONS /a"],
  "no OPTIONS elsewhere": ["OPTIONS", "/a/x", null],
  "the root": ["GET", "/", "GET /"],
  "nothing for a longer path": ["GET", "/ab", null],
  "paths as they appear in URLs": ["GET", new URL("http://h/déjà vu").pathname, "GET /d%C3%A9j%C3%A0%20vu"],
  "nothing by letter case": ["GET", "/A", null],
};

for (const [name, [method, pathname, key]] of Object.entries(requests)) {
  Deno.test(`a request gets ${name}`, () => assert.equal(table.find(method, pathname), key));
}

const mistakes: Record<string, readonly [spec: unknown, message: RegExp]> = {
  "a path of the service": [{ path: "/api/x", method: "GET", handler }, /belongs to the service/],
  "a path below the dashboard": [{ path: "/_/x", method: "GET", handler }, /belongs to the service/],
  "the metrics": [{ path: "/metrics", method: "GET", handler }, /belongs to the service/],
  "a path that leads there": [{ path: "/x/../api/y", method: "GET", handler }, /belongs to the service/],
  "a path without a slash": [{ path: "x", method: "GET", handler }, /must start with a slash/],
  "a query string": [{ path: "/x?y=1", method: "GET", handler }, /must not contain "\?"/],
  "path and prefix": [
    { path: "/x", pathPrefix: "/x", method: "GET", handler },
    /either a path or a pathPrefix/,
  ],
  "neither": [{ method: "GET", handler }, /either a path or a pathPrefix/],
  "an unknown method": [{ path: "/x", method: "FETCH", handler }, /method of a route must be one of/],
  "HEAD": [{ path: "/x", method: "HEAD", handler }, /the GET route handles it/],
  "a bare function": [
    { path: "/x", method: "GET", handler: () => new Response() },
    /must be created by httpAction/,
  ],
  "the same route twice": [{ path: "/taken", method: "GET", handler }, /Duplicate route GET \/taken/],
};

for (const [name, [spec, message]] of Object.entries(mistakes)) {
  Deno.test(`a route with ${name} is refused`, () => {
    const http = httpRouter();
    http.route({ path: "/taken", method: "GET", handler });
    assert.throws(() => http.route(spec as never), message);
    assert.equal(routeDefinitions(http)?.size, 1);
  });
}

Deno.test("a default export that is not a router gets an error with the expected value", () => {
  assert.throws(() => appRoutes({}), /default export must be the router/);
  assert.throws(() => appRoutes(undefined), /default export must be the router/);
});
