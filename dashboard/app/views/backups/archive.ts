/** Actions on a backup archive at any location. */
import { adminSession } from "../../server/admin_session.ts";
import { runPageTask } from "../../ui/page_tasks.ts";
import { showToast } from "../../ui/toasts.tsx";
import { saveFile } from "../../ui/save_file.ts";
import { count } from "../../ui/format.tsx";

/** Endpoint of a manual backup. */
export const backupPath = (name: string): string => `/api/admin/backups/${encodeURIComponent(name)}`;

/** Endpoint of a scheduled backup. */
export const scheduledPath = (name: string): string =>
  `/api/admin/scheduled-backups/${encodeURIComponent(name)}`;

/** Downloads an archive. It is fetched with an Authorization header so that the token never appears in an address. */
export async function download(path: string): Promise<void> {
  const name = decodeURIComponent(path.split("/").at(-1) ?? "");
  await runPageTask(
    { view: "backups", text: `Downloading ${name}…`, cancelable: true },
    async ({ signal }) => {
      saveFile(name, await (await adminSession.fetch(path, { signal })).blob());
    },
  );
}

/** Unpacks and verifies an archive on the server, and shows what it contains. */
export async function verify(path: string): Promise<void> {
  const response = await adminSession.fetch(`${path}/verify`, { method: "POST" });
  const { holds } = await response.json() as {
    readonly holds: { readonly ts: number; readonly tables: number; readonly documents: number };
  };
  showToast(
    `The archive is intact: ${count(holds.documents)} documents in ${
      count(holds.tables)
    } tables, up to commit ${count(holds.ts)}.`,
  );
}
