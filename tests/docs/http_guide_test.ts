/** The programs of the page about HTTP run against a server with the app of the guides. */
import assert from "node:assert/strict";
import { generatedModule } from "../../mod/functions/generated_module.ts";
import { startTestServer } from "../auth/server/test_server.ts";
import { needs, onPath, type Service } from "../support/services.ts";
import { codeBlocks, documentedApps } from "./pages.ts";

const programs: readonly Service[] = ["curl", "python3"].map((name) => ({
  name,
  find: () => onPath(name),
  hint: "a package of the system",
}));

Deno.test({
  ...needs(
    programs,
    "the shell script and the Python program of docs/http.md sign up, sign in and call functions",
  ),
  fn: runPrograms,
});

async function runPrograms(): Promise<void> {
  const functions: Record<string, string> = {};
  for (const [path, text] of (await documentedApps()).get("guide") ?? []) {
    if (path.startsWith("functions/")) functions[path.slice("functions/".length)] = text;
  }
  functions["_generated.ts"] = generatedModule(Object.keys(functions));
  await using server = await startTestServer({ functions });
  const blocks = await codeBlocks("docs/http.md");
  const run = async (program: string, args: readonly string[], first: string) => {
    const block = blocks.find(({ text }) => text.startsWith(first));
    assert.ok(block !== undefined, first);
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args: [...args, block.text],
      env: { SYNCLINE_URL: server.url },
    }).output();
    const decoder = new TextDecoder();
    assert.ok(success, decoder.decode(stderr));
    return decoder.decode(stdout);
  };
  assert.match(await run("sh", ["-ec"], "# accounts.sh\n"), /"accessToken".*\n?.*"title":"Home"/);
  assert.match(await run("python3", ["-c"], "# syncline_client.py\n"), /^Home \S+ \[\{.*oat milk/m);
}
