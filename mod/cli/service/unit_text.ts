/** Template of the systemd unit. */
import type { Installed } from "./program.ts";

/** Home folders, which the service can only read if its program is installed there. */
const HOMES = /^\/(?:home|root)\//;

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
  return `[Unit]
Description=Syncline
After=network.target

[Service]
Type=exec
${hosts}ExecStart=${args.map(quoted).join(" ")}
WorkingDirectory=/var/lib/syncline
Environment=DENO_TOKIO_EVENT_INTERVAL=1 XDG_CACHE_HOME=/var/cache/syncline SYNCLINE_CACHE_DIR=/var/cache/syncline
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

/** Quotes a word for a systemd command line. */
function quoted(word: string): string {
  const plain = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll(/["\\]/g, "\\$&")}"`;
}
