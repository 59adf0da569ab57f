/** Warnings at the start about the environment and `--env-file`. */
import assert from "node:assert/strict";
import { environmentHints } from "../../mod/cli/serve_command.ts";
import { envFileWarnings, readEnvFile } from "../../mod/config/env_file.ts";
import { TempFolder } from "../support/temp_folder.ts";

Deno.test("DV6 invalid lines of --env-file are reported by number, without their values", () => {
  const text = `# a comment
GOOD=1
export ALSO=2

STRIPE-KEY=sk_live_secret
api key: secret
SYNCLINE_PORT=80
LONG="first
not=a line of its own
last"
= nothing
EMPTY=
`;
  assert.deepEqual(envFileWarnings(text, "/app/.env"), [
    "/app/.env, line 5 is not a variable and is ignored: write it as STRIPE_KEY=value",
    "/app/.env, line 6 is not a variable and is ignored: write it as API=value",
    "/app/.env, line 7 sets SYNCLINE_PORT in ctx.env only: set server options by flag or in the server's own environment",
    "/app/.env, line 11 is not a variable and is ignored: write it as NAME=value",
  ]);
  const many = envFileWarnings("what?\n".repeat(100), "/app/.env");
  assert.deepEqual([many.length, many.at(-1)], [6, "/app/.env: 95 more such lines"]);
});

Deno.test("DV6 a file of variables is read as before, and named with its full path", async () => {
  await using folder = await TempFolder.with({ ".env": 'A=1\nB-C=2\nD="x\ny"\n' });
  const { values, warnings } = await readEnvFile(folder.at(".env"));
  assert.deepEqual([values["A"], values["D"], warnings.length], ["1", "x\ny", 1]);
  await assert.rejects(
    readEnvFile("nowhere.env"),
    (error: Error) => error.message.includes(`"${Deno.cwd()}/`),
  );
});

Deno.test("DV6 a variable that is nearly one of the server's is named, with the one that is meant", async () => {
  Deno.env.set("SYNCLINE_PROT", "1");
  Deno.env.set("SYNCLINE_GITHUB_SECRET", "of the file of providers\nexport NOTHING=1");
  try {
    const hints = await environmentHints();
    assert.ok(
      hints.includes("Unknown variable SYNCLINE_PROT: did you mean SYNCLINE_PORT?"),
      hints.join("\n"),
    );
    assert.deepEqual(hints.filter((hint) => hint.includes("GITHUB")), []);
  } finally {
    Deno.env.delete("SYNCLINE_PROT");
    Deno.env.delete("SYNCLINE_GITHUB_SECRET");
  }
});
