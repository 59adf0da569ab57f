/** The dashboard's page, with a nonce of its own for each time it is asked for: styles that scripts add carry it. */
import { fileURLToPath } from "node:url";
import { StaticFiles } from "./static_files.ts";

const FOLDER = fileURLToPath(new URL("../../../dashboard/public", import.meta.url));

/** What stands in the page in the place of the nonce. */
const PLACE = 'nonce=""';

/** Where it lies. */
const PAGE = "/built/index.html";

export async function openDashboard(): Promise<StaticFiles> {
  return await StaticFiles.open(FOLDER, { clientRoutes: false, kept: /^\/built\/chunks\// });
}

/** Answers a request for a file of the dashboard; `nonce` is the one that the answer's policy names. */
export async function dashboardFile(
  dashboard: StaticFiles,
  { request, pathname, nonce }: {
    readonly request: Request;
    readonly pathname: string;
    readonly nonce: string;
  },
): Promise<Response> {
  if (pathname !== "/" && pathname !== "/index.html") return await dashboard.respond(request, pathname);
  // Never a part and never "not modified": each answer is another one.
  const whole = new Request(request.url, { method: request.method });
  const page = await dashboard.respond(whole, PAGE);
  if (page.status !== 200 || page.body === null) return page;
  const headers = new Headers({ "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
  return new Response((await page.text()).replace(PLACE, `nonce="${nonce}"`), { headers });
}
