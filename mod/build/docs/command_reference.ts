/** Reference of the command line, from the same table of commands that the program runs. */
import { commands } from "../../cli/commands.ts";
import { optionsOf } from "../../config/options.ts";
import { optionRow, table } from "./tables.ts";

/** Returns a section for each command, with its options. The options of `serve` are on a page of their own. */
export function commandSections(): string {
  return commands.map(({ name, description, argument, second }) => {
    const positional = [argument, second].filter((one) => one !== undefined);
    const words = positional.map(({ name, optional }) => optional ? `[${name}]` : `<${name}>`);
    const usage = ["npx syncline", name, ...words, "[options]"].join(" ");
    const arguments_ = positional.map(({ name, description }) => `- \`${name}\`: ${description}\n`).join("");
    const rows = optionsOf(name).map(([, spec]) => optionRow(spec));
    const options = name === "serve"
      ? "Its options are listed in [Options](options.md).\n"
      : rows.length === 0
      ? ""
      : table(["Option", "Variable", "Default", "Meaning"], rows);
    return `## ${name}\n\n${description}.\n\n\`\`\`text\n${usage}\n\`\`\`\n\n${arguments_}\n${options}`;
  }).join("\n");
}
