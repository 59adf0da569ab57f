/** Labels of referenced documents, updated live. */
import { useMemo, useRef } from "react";
import { useQuery } from "syncline/react";
import { api } from "../../server/api.ts";

/** By ID: `null` for documents without a label, `undefined` for those that do not exist. Without IDs that are not loaded. */
export type Labels = ReadonlyMap<string, string | null | undefined>;

/** The server's limit. */
const LABELS_MAX = 500;

/** Loads labels. Returns the previous ones while others are loaded. */
export function useLabels(ids: readonly string[]): Labels {
  const requested = useMemo(() => ids.slice(0, LABELS_MAX), [ids]);
  const found = useQuery(api.data.labels, requested.length === 0 ? "skip" : { ids: requested });
  const labels = useMemo(
    () => found && new Map(requested.map((id) => [id, found[id]] as const)),
    [requested, found],
  );
  const shown = useRef<Labels>(new Map());
  if (labels !== undefined) shown.current = labels;
  return shown.current;
}
