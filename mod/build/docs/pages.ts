/** The pages of `docs/` with their generated parts renewed. */
import { fileURLToPath } from "node:url";
import { ApiReference } from "./api_reference.ts";
import { commandSections, errorTable, metricsTable, optionTables, rateLimitTable } from "./tables.ts";

const repository = fileURLToPath(new URL("../../../", import.meta.url));

/** Returns the current text of each page that has a generated part, by its path in the repository. */
export async function generatedPages(): Promise<Map<string, string>> {
  const api = {
    functions: `${repository}mod/functions/api/mod.ts`,
    testing: `${repository}mod/testing/mod.ts`,
    client: `${repository}mod/client/mod.ts`,
    react: `${repository}mod/client/react/mod.ts`,
  };
  const functions = new ApiReference([api.functions, api.testing]);
  const client = new ApiReference([api.client, api.react]);
  const parts:
    readonly (readonly [page: string, part: string, text: (page: string) => string | Promise<string>])[] = [
      ["options", "options", optionTables],
      ["errors", "errors", errorTable],
      ["limits", "rate-limits", rateLimitTable],
      ["metrics", "metrics", metricsTable],
      ["commands", "commands", commandSections],
      ["functions_api", "server", () => functions.render(api.functions)],
      ["functions_api", "test", () => functions.render(api.testing)],
      ["client_api", "client", () => client.render(api.client)],
      ["client_api", "react", () => client.render(api.react)],
    ];
  const pages = new Map<string, string>();
  for (const [name, part, render] of parts) {
    const path = `docs/${name}.md`;
    const page = pages.get(path) ?? await Deno.readTextFile(repository + path);
    pages.set(path, replacePart(page, part, await render(page)));
  }
  for (const [path, text] of pages) pages.set(path, await formatted(text));
  return pages;
}

/** Replaces the text between `<!-- generated: part -->` and `<!-- end -->`. */
function replacePart(page: string, part: string, text: string): string {
  const [before = "", rest] = page.split(`<!-- generated: ${part} -->`);
  const end = rest?.indexOf("<!-- end -->") ?? -1;
  if (rest === undefined || end < 0) throw new TypeError(`The page has no generated part "${part}"`);
  return `${before}<!-- generated: ${part} -->\n\n${text}\n${rest.slice(end)}`;
}

async function formatted(text: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--ext", "md", "--config", `${repository}deno.json`, "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}
