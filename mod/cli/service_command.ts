/** The command `service`: prints a systemd unit, a Dockerfile or a compose file for the installed program. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OptionValues } from "../config/options.ts";
import { fileErrorReason, StartError } from "../config/start_error.ts";
import { VERSION } from "../config/version.ts";
import { helpFields } from "../explained.ts";
import { statIfThere } from "../kit/durable_files.ts";
import { programConfig, runtimeEnvironment } from "../kit/processes/program.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";

/** `npm`: the npm package; `file`: the single-file server; `clone`: the sources. */
type Installed =
  | { readonly kind: "npm" | "clone"; readonly command: readonly string[] }
  | { readonly kind: "file"; readonly command: readonly string[] };

/** Assumed path of the single-file server, which does not know its own path. */
const DEFAULT_PATH = "/usr/local/bin/syncline";

/** `npmCommand` is the command line of the npm package's launcher, one argument a line. */
export async function installedProgram(npmCommand: string | undefined): Promise<Installed> {
  if (npmCommand !== undefined) return { kind: "npm", command: npmCommand.split("\n") };
  const root = dirname(fileURLToPath(new URL("../../main.ts", import.meta.url)));
  const runtime = Deno.execPath();
  if (await statIfThere(join(root, "../complete")) !== null && dirname(runtime) === dirname(root)) {
    return { kind: "file", command: [DEFAULT_PATH] };
  }
  const flags = ["run", "--quiet", "--no-prompt", "-P=serve", "--config", programConfig()];
  return { kind: "clone", command: [runtime, ...flags, join(root, "mod/build/start.ts")] };
}

const HEALTH =
  `node -e "fetch('http://127.0.0.1:3210/api/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"`;
const HEALTH_OF_FILE =
  `bash -c 'exec 3<>/dev/tcp/127.0.0.1/3210 && printf "GET /api/health HTTP/1.0\\r\\n\\r\\n" >&3 && grep -q "200 OK" <&3'`;

export function dockerfileText({ kind }: Installed): string {
  const isPackage = kind === "npm";
  const base = isPackage
    ? `FROM node:22-slim
RUN npm install --global --no-audit --no-fund syncline@${VERSION} && install -d -o node -g node /data
USER node
`
    : `# Expects the single-file server in this folder: "deno task build:single" builds it as dist/syncline.
FROM debian:stable-slim
COPY syncline /usr/local/bin/syncline
RUN useradd --create-home syncline && install -d -o syncline -g syncline /data
USER syncline
`;
  return `${base}ENV XDG_CACHE_HOME=/tmp/cache
WORKDIR /data
VOLUME /data
EXPOSE 3210
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ${isPackage ? HEALTH : HEALTH_OF_FILE}
ENTRYPOINT ["syncline"]
CMD ["serve", "--host", "0.0.0.0", "--data", "/data", "--restart-exit-code", "75"]
`;
}

/** Address ranges from which Docker creates networks by default. */
const DOCKER_NETWORKS = "172.16.0.0/12,192.168.0.0/16";

function composeText({ publicUrl }: { readonly publicUrl: string | null }): string {
  const url = publicUrl === null
    ? "      # Behind a proxy, name the address that browsers use: SYNCLINE_PUBLIC_URL: https://...\n"
    : `      SYNCLINE_PUBLIC_URL: ${JSON.stringify(publicUrl)}\n`;
  return `services:
  syncline:
    build: .
    restart: unless-stopped
    init: true
    stop_grace_period: 20s
    ports:
      - "127.0.0.1:3210:3210"
    volumes:
      - data:/data
    environment:
      # Other containers request this host name.
      SYNCLINE_ALLOW_HOST: syncline
      # Requests of a proxy on the host come from the gateway of a Docker network.
      SYNCLINE_TRUSTED_PROXY: "${DOCKER_NETWORKS}"
${url}    read_only: true
    tmpfs:
      - /tmp:exec
    cap_drop:
      - ALL
    security_opt:
      - no-new-privileges:true
    ulimits:
      nofile: 65536

volumes:
  data:
`;
}

/** Home folders, which the service can only read if its program is installed there. */
const HOMES = /^\/(?:home|root)\//;

/** Template of the systemd unit. */
export function unitText(
  { kind, command }: Installed,
  { publicUrl }: { readonly publicUrl: string | null },
): string {
  const serve = kind === "clone" ? [] : ["serve"];
  const args = [
    ...command,
    ...serve,
    ...["--data", "/var/lib/syncline"],
    ...publicUrl === null ? [] : ["--public-url", publicUrl],
    ...["--trusted-proxy", "127.0.0.1", "--restart-exit-code", "75"],
  ];
  const home = command.some((part) => HOMES.test(part)) ? "read-only" : "yes";
  // Without an address of its own it answers for this machine alone.
  const hosts = publicUrl === null
    ? "# Behind a proxy, name the host that browsers ask for: --public-url https://... or --allow-host ...\n"
    : "";
  const settings = Object.entries(runtimeEnvironment).map((setting) => setting.join("=")).join(" ");
  return `[Unit]
Description=Syncline
After=network.target

[Service]
Type=exec
${hosts}ExecStart=${args.map(quoted).join(" ")}
WorkingDirectory=/var/lib/syncline
Environment=${settings}
Environment=XDG_CACHE_HOME=/var/cache/syncline SYNCLINE_CACHE_DIR=/var/cache/syncline
DynamicUser=yes
StateDirectory=syncline
StateDirectoryMode=0700
CacheDirectory=syncline
UMask=0077
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=20
Restart=on-failure
SuccessExitStatus=75
RestartForceExitStatus=75
LimitNOFILE=65536

# Hardening. The JIT compiler and child processes with resource limits must stay allowed.
ProtectSystem=strict
ProtectHome=${home}
PrivateTmp=yes
PrivateDevices=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`;
}

function quoted(word: string): string {
  const plain = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** Variable in which the npm package's launcher passes its command line. */
export const PROGRAM_VARIABLE = "SYNCLINE_PROGRAM";

const kinds = ["systemd", "docker"] as const;

/** The command `service`: writes the files that run this installation as a service. */
export const serviceCommand: CommandSpec = {
  name: "service",
  description:
    "Write the files to run Syncline as a service: a hardened systemd unit, or a Dockerfile and a compose file",
  argument: { name: "kind", description: kinds.join(" or ") },
  run: async ({ publicUrl }, kind) => {
    const log = commandLog();
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
