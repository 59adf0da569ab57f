/** Uploads to the server under test, through its upload URLs. */
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";

export interface UploadOptions {
  readonly type?: string;
  /** Address of the client, for servers that trust ours as a proxy. */
  readonly from?: string;
}

/** Uploads a file and gives its id. Throws what the server answered when it was refused. */
export async function uploaded(
  server: ServerProcess,
  body: BodyInit,
  options: UploadOptions = {},
): Promise<string> {
  return await sent(await uploadUrl(server), body, options);
}

export async function uploadUrl(server: ServerProcess): Promise<string> {
  return `http://127.0.0.1:${server.port}${await server.call("mutation", "files:generate")}`;
}

/** Uploads a file through a URL and gives its id. */
export async function sent(
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
