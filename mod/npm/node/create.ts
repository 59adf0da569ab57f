/** The command `create-syncline`: `npm create syncline@latest my-app`. */
import { relative, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { install, manager } from "./packages.ts";
import { PlainError, runProgram } from "./plain_error.ts";
import { scaffold, type Template, templates } from "./scaffold.ts";

const USAGE = `Usage: npm create syncline@latest [folder] -- [options]

  --template <name>   ${templates.join(", ")}; default: the first
  --no-install        leave the packages for later
`;

interface Wishes {
  readonly folder: string;
  readonly template: Template;
  readonly installs: boolean;
  readonly help: boolean;
}

function wishes(args: string[]): Wishes {
  let parsed;
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: { template: { type: "string" }, "no-install": { type: "boolean" }, help: { type: "boolean" } },
    });
  } catch (error) {
    throw new PlainError(`${error instanceof Error ? error.message : error}\n\n${USAGE}`, { cause: error });
  }
  const { values, positionals: [folder = "my-app", ...more] } = parsed;
  const template = templates.find((name) => name === (values.template ?? "react"));
  if (template === undefined || more.length > 0) {
    const fault = template === undefined
      ? `Unknown template "${values.template}"`
      : `Expected one folder, received ${more.length + 1}`;
    throw new PlainError(`${fault}\n\n${USAGE}`);
  }
  return { folder, template, installs: !values["no-install"], help: values.help === true };
}

/** Returns the exit code. */
function create(args: string[]): number {
  const { folder: name, template, installs, help } = wishes(args);
  if (help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const folder = resolve(name);
  scaffold(folder, template);
  const tool = manager();
  if (installs) install(folder, tool);
  const here = relative(process.cwd(), folder);
  const steps = [
    ...here === "" ? [] : [`cd ${here.includes(" ") ? `"${here}"` : here}`],
    ...installs ? [] : [`${tool} install`],
    `${tool} run dev`,
  ];
  process.stdout.write(
    `\n${here === "" ? "The app" : here} is ready:\n\n${steps.map((step) => `  ${step}\n`).join("")}\n`,
  );
  return 0;
}

await runProgram(() => Promise.resolve(create(process.argv.slice(2))));
