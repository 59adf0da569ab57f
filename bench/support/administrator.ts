/** Administrators of a new server. */
import { found } from "../../tests/support/waiting.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";

/** Creates the first administrator through the setup link that the server prints at its start. Returns an access token. */
export async function signUpAdministrator(server: ServerProcess): Promise<string> {
  const token = await found(() => /\/\S*#\w+=(\S+)/.exec(server.lastOutput)?.[1], {
    what: "the server prints the link for the first administrator",
  });
  const response = await fetch(`http://127.0.0.1:${server.port}/api/auth/admin/setup`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token, email: "root@example.com", password: "correct horse battery" }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer.accessToken;
}
