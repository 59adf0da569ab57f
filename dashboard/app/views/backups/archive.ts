/** What is done with one archive, wherever it lies. */
import { adminSession } from "../../server/admin_session.ts";
import { longWork } from "../../ui/long_work.ts";
import { note } from "../../ui/notes.tsx";
import { saveFile } from "../../ui/save_file.ts";
import { count } from "../../ui/texts.tsx";

/** Where an archive that was made here is asked for. */
export const backupPath = (name: string): string => `/api/admin/backups/${encodeURIComponent(name)}`;

/** The same for one of the schedule. */
export const scheduledPath = (name: string): string =>
  `/api/admin/scheduled-backups/${encodeURIComponent(name)}`;

/** The token goes in a header, never in an address, so the archive is fetched and then saved. */
export async function download(path: string): Promise<void> {
  const name = decodeURIComponent(path.split("/").at(-1) ?? "");
  await longWork(
    { view: "backups", text: `${name} is downloaded…`, cancelable: true },
    async ({ signal }) => {
      saveFile(name, await (await adminSession.fetch(path, { signal })).blob());
    },
  );
}

/** Has it unpacked and checked as for a restore, and tells what it holds. */
export async function verify(path: string): Promise<void> {
  const response = await adminSession.fetch(`${path}/verify`, { method: "POST" });
  const { holds } = await response.json() as {
    readonly holds: { readonly ts: number; readonly tables: number; readonly documents: number };
  };
  note(
    `The archive is whole: ${count(holds.documents)} documents in ${
      count(holds.tables)
    } tables, up to commit ${count(holds.ts)}.`,
  );
}
