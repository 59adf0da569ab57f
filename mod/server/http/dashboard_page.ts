/** Serves the dashboard. Its page gets a fresh nonce for each request, which allows styles added by scripts. */
import { fileURLToPath } from "node:url";
import { StaticFiles } from "./static_files.ts";

const FOLDER = fileURLToPath(new URL("../../../dashboard/public", import.meta.url));

/** Placeholder of the nonce in the page. */
const PLACE = 'nonce=""';

/** Path of the page below the folder. */
const PAGE = "/built/index.html";

export async function openDashboard(): Promise<StaticFiles> {
  return await StaticFiles.open(FOLDER, { clientRoutes: false, immutable: /^\/built\/chunks\// });
}

/** Answers a request for a file of the dashboard. `nonce` is the one in the Content-Security-Policy. */
export async function dashboardFile(
  dashboard: StaticFiles,
  { request, pathname, nonce }: {
    readonly request: Request;
    readonly pathname: string;
    readonly nonce: string;
  },
): Promise<Response> {
  if (pathname !== "/" && pathname !== "/index.html") return await dashboard.respond(request, pathname);
  // Without Range and conditional headers: each response differs.
  const whole = new Request(request.url, { method: request.method });
  const page = await dashboard.respond(whole, PAGE);
  if (page.status !== 200 || page.body === null) return page;
  const headers = new Headers({ "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
  return new Response((await page.text()).replace(PLACE, `nonce="${nonce}"`), { headers });
}
