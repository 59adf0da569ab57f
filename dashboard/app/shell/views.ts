/** The views, in the order of the navigation. Each is loaded when it is first opened. */
import { type ComponentType, lazy } from "react";
import type { IconName } from "../ui/icon.tsx";

export interface ViewEntry {
  /** First part of its address. */
  readonly name: string;
  readonly title: string;
  readonly icon: IconName;
  /** Words people may look for it by. */
  readonly words: string;
  readonly View: ComponentType;
  /** Fetches the view, so that it is there when it is shown; whoever shows it is told when that fails. */
  readonly fetch: () => void;
}

function view(load: () => Promise<ComponentType>): Pick<ViewEntry, "View" | "fetch"> {
  let loading: Promise<{ readonly default: ComponentType }> | null = null;
  const once = () => loading ??= load().then((View) => ({ default: View }));
  return { View: lazy(once), fetch: () => void once().catch(() => {}) };
}

export const views: readonly ViewEntry[] = [
  {
    name: "overview",
    title: "Overview",
    icon: "overview",
    words: "home health status",
    ...view(async () => (await import("../views/overview/overview.tsx")).Overview),
  },
  {
    name: "data",
    title: "Data",
    icon: "data",
    words: "tables documents schema indexes export import",
    ...view(async () => (await import("../views/data/data.tsx")).Data),
  },
  {
    name: "functions",
    title: "Functions",
    icon: "functions",
    words: "queries mutations actions run",
    ...view(async () => (await import("../views/functions/functions.tsx")).Functions),
  },
  {
    name: "versions",
    title: "Versions",
    icon: "versions",
    words: "deploy rollback code release",
    ...view(async () => (await import("../views/versions/versions.tsx")).Versions),
  },
  {
    name: "deploying",
    title: "Deploying",
    icon: "deploying",
    words: "deploy keys environment variables env secrets migrations",
    ...view(async () => (await import("../views/deploying/deploying.tsx")).Deploying),
  },
  {
    name: "logs",
    title: "Logs",
    icon: "logs",
    words: "execution log errors runs tail search",
    ...view(async () => (await import("../views/logs/logs.tsx")).Logs),
  },
  {
    name: "users",
    title: "Users",
    icon: "users",
    words: "accounts sessions impersonate sign in as",
    ...view(async () => (await import("../views/users/users.tsx")).Users),
  },
  {
    name: "files",
    title: "Files",
    icon: "files",
    words: "storage uploads images",
    ...view(async () => (await import("../views/files/files.tsx")).Files),
  },
  {
    name: "schedule",
    title: "Schedule",
    icon: "schedule",
    words: "jobs crons",
    ...view(async () => (await import("../views/schedule/schedule.tsx")).Schedule),
  },
  {
    name: "backups",
    title: "Backups",
    icon: "backups",
    words: "restore archive download replication point in time",
    ...view(async () => (await import("../views/backups/backups.tsx")).Backups),
  },
  {
    name: "servers",
    title: "Servers",
    icon: "servers",
    words: "cluster leader follower processes memory disk health",
    ...view(async () => (await import("../views/servers/servers.tsx")).Servers),
  },
  {
    name: "administrators",
    title: "Administrators",
    icon: "key",
    words: "admins password access",
    ...view(async () => (await import("../views/administrators/administrators.tsx")).Administrators),
  },
  {
    name: "audit",
    title: "Audit log",
    icon: "audit",
    words: "who did what history changes",
    ...view(async () => (await import("../views/audit/audit.tsx")).Audit),
  },
  {
    name: "settings",
    title: "Settings",
    icon: "settings",
    words: "options mail smtp signups bucket s3 rate limits",
    ...view(async () => (await import("../views/settings/settings.tsx")).Settings),
  },
];

export function viewNamed(name: string | undefined): ViewEntry | undefined {
  return views.find((view) => view.name === (name ?? "overview"));
}
