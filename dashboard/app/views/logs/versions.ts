/** Deployed versions, to mark deploys and to name the version of a run. */
import { useMemo } from "react";
import { useRequest } from "../../ui/use_request.tsx";

export interface DeployedVersion {
  readonly hash: string;
  readonly deployedAt: number;
}

/** The deployed versions, oldest first. */
export function useVersions(): readonly DeployedVersion[] {
  const { value } = useRequest<{ readonly versions: readonly DeployedVersion[] }>(
    "/api/admin/functions/versions",
  );
  return useMemo(
    () => (value?.versions ?? []).toSorted((a, b) => a.deployedAt - b.deployedAt),
    [value],
  );
}

/** The time between two deploys. */
export interface VersionSpan {
  readonly hash: string;
  readonly from: number;
  /** `null` for the newest deploy. */
  readonly to: number | null;
}

/** Returns the last deploy before a time, and the time of the next one. A rollback is no deploy. */
export function lastDeploy(versions: readonly DeployedVersion[], at: number): VersionSpan | null {
  const position = versions.findLastIndex(({ deployedAt }) => deployedAt <= at);
  const version = versions[position];
  if (version === undefined) return null;
  return { hash: version.hash, from: version.deployedAt, to: versions[position + 1]?.deployedAt ?? null };
}
