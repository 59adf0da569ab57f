/** The program's version, kept in deno.json alone. */
import project from "../../deno.json" with { type: "json" };

export const VERSION: string = project.version;
