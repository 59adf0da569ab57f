/** Uploads of files, and requests for thumbnails. */
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";

export interface UploadOptions {
  readonly type?: string;
  /** Address of the client, for servers with `--trusted-proxy`. */
  readonly from?: string;
}

/** Uploads a file and returns its id. */
export async function uploadFile(
  server: ServerProcess,
  body: BodyInit,
  options: UploadOptions = {},
): Promise<string> {
  return await uploadTo(await createUploadUrl(server), body, options);
}

export async function createUploadUrl(server: ServerProcess): Promise<string> {
  return `http://127.0.0.1:${server.port}${await server.call("mutation", "files:generate")}`;
}

/** Uploads a file to an upload URL and returns its id. Throws if the server refuses it. */
export async function uploadTo(
  url: string,
  body: BodyInit,
  { type = "application/octet-stream", from = "127.0.0.1" }: UploadOptions = {},
): Promise<string> {
  const headers = { "Content-Type": type, "X-Forwarded-For": from };
  const response = await fetch(url, { method: "POST", body, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text).storageId;
}

/** Path of a thumbnail with a height of 500 pixels. */
export function thumbnailPath(id: string, width = 500): string {
  return `/api/storage/${id}?thumb=${width}x500&fit=cover`;
}

export async function fetchThumbnail({ port }: ServerProcess, path: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  const bytes = await response.bytes();
  if (!response.ok || bytes.length < 1_000) throw new Error(`${response.status} ${path}`);
}
