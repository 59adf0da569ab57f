/** Times in which versions were served, to mark deploys and rollbacks. */
import { useMemo } from "react";
import type { DeployedVersions, ServedTime } from "../../../../mod/ops/deploy/deployments.ts";
import { useRequest } from "../../ui/use_request.tsx";

export type { ServedTime };

/** Returns the deploys and rollbacks, oldest first. */
export function useServedTimes(): readonly ServedTime[] {
  const { value } = useRequest<DeployedVersions>("/api/admin/functions/versions");
  return useMemo(() => (value?.history ?? []).toSorted((a, b) => a.from - b.from), [value]);
}
