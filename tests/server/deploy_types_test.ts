/** `deploy` checks the types of functions with the app's own compiler, here one that prints its arguments. */
import assert from "node:assert/strict";
import { checkAppTypes } from "../../mod/cli/deploy/app_types.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { needs, npm } from "../support/services.ts";
import { TempFolder } from "../support/temp_folder.ts";

async function app(output: string, stream: "stdout" | "stderr" = "stdout"): Promise<TempFolder> {
  return await TempFolder.with({
    "app/tsconfig.json": "{}",
    "app/functions/tasks.ts": "",
    // In a parent folder, as in a workspace.
    "node_modules/typescript/package.json": '{ "type": "commonjs" }',
    "node_modules/typescript/bin/tsc": `process.${stream}.write(${JSON.stringify(output)}); process.exit(${
      output === "" ? 0 : 2
    });`,
  });
}

function noWarning(message: string): void {
  assert.fail(message);
}

const IN_PAGE = "src/main.tsx(3,1): error TS2304: Cannot find name 'x'.\n";
const IN_FUNCTION =
  "functions/tasks.ts(1,7): error TS2322: Type 'number' is not assignable\n  to type 'string'.\n";

Deno.test(
  needs(npm, "CD6 type errors in functions end a deploy with their lines, others do not"),
  async () => {
    await using mistyped = await app(IN_PAGE + IN_FUNCTION + IN_PAGE);
    await assert.rejects(
      checkAppTypes(mistyped.at("app/functions"), noWarning),
      (error) => {
        assert.ok(error instanceof StartError);
        assert.equal(error.message.split("\n").slice(1).join("\n") + "\n", IN_FUNCTION);
        return true;
      },
    );
    for (const output of ["", IN_PAGE]) {
      await using other = await app(output);
      await checkAppTypes(other.at("app/functions"), noWarning);
    }
  },
);

Deno.test(
  needs(npm, "CD6 a compiler that fails without checking types causes one warning with its first line"),
  async () => {
    for (
      const [output, stream] of [
        ["tsconfig.json(1,2): error TS1005: '}' expected.\n", "stdout"],
        ["error TS18003: No inputs were found.\nMore.\n", "stdout"],
        ["\nsh: exec: node: not found\n", "stderr"],
      ] as const
    ) {
      await using broken = await app(output, stream);
      const warnings: string[] = [];
      await checkAppTypes(broken.at("app/functions"), (message) => warnings.push(message));
      assert.deepEqual(warnings, [
        `The types of the functions were not checked, because tsc failed: ${output.trim().split("\n")[0]}`,
      ]);
    }
  },
);

Deno.test("CD6 an app without TypeScript or its configuration is deployed without a check", async () => {
  await using folder = await TempFolder.with({ "functions/tasks.js": "", "other/tsconfig.json": "{}" });
  await checkAppTypes(folder.at("functions"), noWarning);
  await checkAppTypes(folder.at("other"), noWarning);
});
