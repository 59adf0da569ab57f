/** The page that browsers show while the server starts or stops. It loads the requested page once the server answers. */

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="1">
<title>Starting…</title>
<body style="font: 16px/1.5 system-ui, sans-serif; display: grid; place-content: center; min-height: 90vh">
<p role="status">The server is not ready yet. This page reloads by itself.</p>
</body>
</html>
`;

/** Returns the response of an unavailable server as a page, if a browser navigates to a page of the app. */
export function asStartingPage(response: Response, request: Request, path: string): Response {
  const isNavigation = request.method === "GET" && /\btext\/html\b/.test(request.headers.get("accept") ?? "");
  if (response.status !== 503 || !isNavigation || path.startsWith("/api/")) return response;
  const headers = new Headers(response.headers);
  headers.set("Content-Type", "text/html; charset=utf-8");
  return new Response(PAGE, { status: 503, headers });
}
