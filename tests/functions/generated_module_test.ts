/** The generated file of an app: its contents, and when it is written. `known_paths_test.ts` checks its types. */
import assert from "node:assert/strict";
import { generatedModule, updateGeneratedModule } from "../../mod/functions/generated_module.ts";
import { findModules } from "../../mod/functions/module_files.ts";
import { repository } from "../docs/pages.ts";
import { TempFolder } from "../support/temp_folder.ts";

const noLog = (_level: string, message: string) => assert.fail(message);

Deno.test("the generated file lists modules, is no module itself, and is written when they change", async () => {
  await using folder = await TempFolder.with({ "functions/tasks.ts": "", "functions/admin/jobs.js": "" });
  const functionsDir = folder.at("functions");
  const file = folder.at("functions/_generated.ts");
  await updateGeneratedModule(functionsDir, noLog);
  const first = await Deno.readTextFile(file);
  assert.match(
    first,
    /^ {2}"admin\/jobs": typeof import\("\.\/admin\/jobs\.js"\);\n {2}tasks: typeof import/m,
  );
  assert.match(first, /AppDataModel<null>/);
  const { mtime } = await Deno.stat(file);
  await updateGeneratedModule(functionsDir, noLog);
  assert.deepEqual((await Deno.stat(file)).mtime, mtime, "an unchanged file is not written");
  await Deno.writeTextFile(folder.at("functions/schema.ts"), "");
  await updateGeneratedModule(functionsDir, noLog);
  const second = await Deno.readTextFile(file);
  assert.match(second, /AppDataModel<typeof import\("\.\/schema\.ts"\)>/);
  assert.doesNotMatch(second, /^ {2}schema:/m);
});

Deno.test("an app without TypeScript gets no generated file", async () => {
  await using folder = await TempFolder.with({ "functions/tasks.js": "" });
  await updateGeneratedModule(folder.at("functions"), noLog);
  await assert.rejects(Deno.stat(folder.at("functions/_generated.ts")), Deno.errors.NotFound);
});

Deno.test("the generated files of templates and examples are up to date", async () => {
  for (
    const app of [
      "templates/react",
      "templates/plain",
      "templates/showcase",
      "templates/server",
      "examples/chat",
      "examples/todo",
      "examples/transfer",
      "examples/next",
      "examples/react_router",
      "examples/svelte_kit",
    ]
  ) {
    const functionsDir = `${repository}/${app}/functions`;
    const contents = generatedModule(findModules(functionsDir).map(({ name }) => name));
    assert.equal(await Deno.readTextFile(`${functionsDir}/_generated.ts`), contents, app);
  }
});
