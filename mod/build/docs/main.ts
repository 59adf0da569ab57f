/** Renews the generated parts of the documentation: `deno task build:docs`. */
import { generatedPages } from "./pages.ts";

const repository = new URL("../../../", import.meta.url);
for (const [path, text] of await generatedPages()) await Deno.writeTextFile(new URL(path, repository), text);
