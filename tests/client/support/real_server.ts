/** A real server with the functions of these tests, and what tests against it need. */
import type { TokenStorage } from "../../../mod/client/mod.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { TempFolder } from "../../support/temp_folder.ts";

/** Runs a test against a server on an empty database. */
export async function withServer(test: (url: string) => Promise<void>, flags: string[] = []): Promise<void> {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using server = await ServerProcess.start({ dataDir, functions: "tests/client/functions", flags });
  await test(`http://127.0.0.1:${server.port}`);
}

/** A token storage in memory. */
export function memoryStorage(): TokenStorage {
  const items = new Map<string, string>();
  return {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  };
}
