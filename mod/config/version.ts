/** The program's version, read from deno.json. */
import project from "../../deno.json" with { type: "json" };

export const VERSION: string = project.version;
