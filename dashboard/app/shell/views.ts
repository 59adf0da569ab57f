/** The views. Each is loaded when first opened. */
import { type ComponentType, createElement, use } from "react";
import { type KnownView, viewGroups, type ViewName } from "./view_names.ts";

export interface ViewEntry extends ViewName {
  readonly View: ComponentType;
  /** Preloads the view. Never rejects: rendering the view reports a failed load. */
  readonly fetch: () => Promise<void>;
}

type Load = () => Promise<ComponentType>;

const loads: Readonly<Record<KnownView["name"], Load>> = {
  overview: async () => (await import("../views/overview/overview.tsx")).Overview,
  data: async () => (await import("../views/data/data.tsx")).Data,
  functions: async () => (await import("../views/functions/functions.tsx")).Functions,
  versions: async () => (await import("../views/versions/versions.tsx")).Versions,
  deploying: async () => (await import("../views/deploying/deploying.tsx")).Deploying,
  logs: async () => (await import("../views/logs/logs.tsx")).Logs,
  users: async () => (await import("../views/users/users.tsx")).Users,
  files: async () => (await import("../views/files/files.tsx")).Files,
  schedule: async () => (await import("../views/schedule/schedule.tsx")).Schedule,
  backups: async () => (await import("../views/backups/backups.tsx")).Backups,
  live: async () => (await import("../views/live/live.tsx")).Live,
  servers: async () => (await import("../views/servers/servers.tsx")).Servers,
  administrators: async () => (await import("../views/administrators/administrators.tsx")).Administrators,
  audit: async () => (await import("../views/audit/audit.tsx")).Audit,
  settings: async () => (await import("../views/settings/settings.tsx")).Settings,
};

function view(load: Load): Pick<ViewEntry, "View" | "fetch"> {
  let loading: Promise<void> | null = null;
  let Loaded: ComponentType | null = null;
  const once = () => loading ??= load().then((View) => void (Loaded = View));
  // A loaded view renders without suspending.
  const View = () => {
    if (Loaded === null) use(once());
    return Loaded === null ? null : createElement(Loaded);
  };
  return { View, fetch: () => once().catch(() => {}) };
}

export const views: readonly ViewEntry[] = viewGroups.flatMap(({ views }) => views).map((entry) => ({
  ...entry,
  ...view(loads[entry.name]),
}));

export function viewNamed(name: string | undefined): ViewEntry | undefined {
  return views.find((view) => view.name === (name ?? "overview"));
}
