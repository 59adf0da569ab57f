/** The client for all client components. */
"use client";
import type { ReactNode } from "react";
import { SynclineProvider } from "syncline/react";
import { client } from "./client.ts";

export function Providers({ children }: { children: ReactNode }) {
  return <SynclineProvider client={client}>{children}</SynclineProvider>;
}
