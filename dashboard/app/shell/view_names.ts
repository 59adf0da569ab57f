/** Names of the views in navigation order. The build also renders the static frame of the page from them. */
import type { IconName } from "../ui/icon_paths.ts";

export interface ViewName {
  /** First part of the view's address. */
  readonly name: string;
  readonly title: string;
  readonly icon: IconName;
  /** Keywords for the command palette. */
  readonly words: string;
}

export interface ViewGroup<View extends ViewName = ViewName> {
  /** `null` for views above the groups. */
  readonly title: string | null;
  readonly views: readonly View[];
}

const groups = [
  {
    title: null,
    views: [{
      name: "overview",
      title: "Overview",
      icon: "overview",
      words: "home health status issues slowest",
    }],
  },
  {
    title: "Data",
    views: [
      {
        name: "data",
        title: "Data",
        icon: "data",
        words: "tables documents schema missing indexes export import csv query console edit undo restore",
      },
      { name: "users", title: "Users", icon: "users", words: "accounts sessions impersonate sign in as" },
      { name: "files", title: "Files", icon: "files", words: "storage uploads images" },
    ],
  },
  {
    title: "Build",
    views: [
      {
        name: "functions",
        title: "Functions",
        icon: "functions",
        words: "api queries mutations actions run http rest curl python openapi client " +
          "slowest slow query performance explain missing index",
      },
      { name: "schedule", title: "Schedule", icon: "schedule", words: "jobs crons" },
      {
        name: "versions",
        title: "Versions",
        icon: "versions",
        words: "deploy rollback code release compare two versions diff sources",
      },
      {
        name: "deploying",
        title: "Deployment",
        icon: "deploying",
        words: "rotate replace revoke deploy keys api keys environment variables env secrets migrations",
      },
    ],
  },
  {
    title: "Operate",
    views: [
      {
        name: "logs",
        title: "Logs",
        icon: "logs",
        words: "execution log errors failures failed runs tail search export",
      },
      {
        name: "backups",
        title: "Backups",
        icon: "backups",
        words: "restore archive download replication point in time one table yesterday",
      },
      {
        name: "live",
        title: "Live",
        icon: "live",
        words: "rooms presence members online clients streams rate limits",
      },
      {
        name: "servers",
        title: "Servers",
        icon: "servers",
        words: "cluster leader follower processes memory disk health",
      },
    ],
  },
  {
    title: "Administer",
    views: [
      {
        name: "administrators",
        title: "Administrators",
        icon: "key",
        words: "admins password access roles viewer editor owner",
      },
      {
        name: "audit",
        title: "Audit log",
        icon: "audit",
        words: "who did what history changes changed deleted removed document",
      },
      {
        name: "settings",
        title: "Settings",
        icon: "settings",
        words: "options mail smtp signups sign in providers alerts bucket s3 rate limits",
      },
    ],
  },
] as const satisfies readonly ViewGroup[];

export type KnownView = (typeof groups)[number]["views"][number];

export const viewGroups: readonly ViewGroup<KnownView>[] = groups;
