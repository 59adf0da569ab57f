/** The command `service`: writes the files that run this installation as a service. */
import { helpFields } from "../../explained.ts";
import { join } from "node:path";
import type { OptionValues } from "../../config/options.ts";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import { stderrLog } from "../../kit/log.ts";
import { type CommandSpec, exitCodes } from "../command_line.ts";
import { composeText, dockerfileText } from "./docker_texts.ts";
import { type Installed, installedProgram } from "./program.ts";
import { unitText } from "./unit_text.ts";

/** Variable in which the npm package's launcher passes its command line. */
export const PROGRAM_VARIABLE = "SYNCLINE_PROGRAM";

const kinds = ["systemd", "docker"] as const;

export const serviceCommand: CommandSpec = {
  name: "service",
  description:
    "Write the files to run Syncline as a service: a hardened systemd unit, or a Dockerfile and a compose file",
  argument: { name: "kind", description: kinds.join(" or ") },
  run: async ({ publicUrl }, kind) => {
    const log = stderrLog({ debug: false });
    const known = kinds.find((name) => name === kind);
    if (known === undefined) {
      log("error", `Unknown service kind "${kind}": expected ${kinds.join(" or ")}`);
      return exitCodes.usage;
    }
    try {
      const installed = await installedProgram(Deno.env.get(PROGRAM_VARIABLE));
      const text = await writeService(known, { installed, publicUrl, folder: Deno.cwd() });
      await Deno.stdout.write(new TextEncoder().encode(text));
      return exitCodes.ok;
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      log("error", error.message, helpFields(error));
      return exitCodes.failed;
    }
  },
};

interface ServiceOptions extends Pick<OptionValues, "publicUrl"> {
  readonly installed: Installed;
  readonly folder: string;
}

/** Writes the files and returns the next steps. Throws a `StartError` and writes nothing if a file exists. */
export async function writeService(
  kind: typeof kinds[number],
  { installed, publicUrl, folder }: ServiceOptions,
): Promise<string> {
  if (kind === "systemd") {
    await writeNew(folder, { "syncline.service": unitText(installed, { publicUrl }) });
    return `Wrote syncline.service. Install the program at ${installed.command.at(-1)}, then run:

  sudo cp syncline.service /etc/systemd/system/
  sudo systemctl daemon-reload
  sudo systemctl enable --now syncline
`;
  }
  const files = { "Dockerfile": dockerfileText(installed), "compose.yaml": composeText({ publicUrl }) };
  await writeNew(folder, files);
  return `Wrote Dockerfile and compose.yaml. Start the service with:

  docker compose up --build --detach
`;
}

async function writeNew(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const written: string[] = [];
  try {
    for (const [name, text] of Object.entries(files)) {
      const path = join(folder, name);
      await Deno.writeTextFile(path, text, { createNew: true });
      written.push(path);
    }
  } catch (error) {
    for (const path of written) await Deno.remove(path);
    const why = error instanceof Deno.errors.AlreadyExists ? "it already exists" : fileErrorReason(error);
    throw new StartError(`Cannot write to "${folder}": ${why}. Nothing was written`, { cause: error });
  }
}
