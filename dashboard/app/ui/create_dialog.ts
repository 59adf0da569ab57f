/** Dialogs that an address opens, such as those of the palette's commands. */
import { useEffect, useState } from "react";
import type { AdminRole } from "../../../mod/functions/admin_roles.ts";
import { replace, useRoute } from "../shell/route.ts";
import { useRefusal, useRole } from "./access.tsx";
import { showToast } from "./toasts.tsx";

/**
 * State of a "create" dialog, which an address with `make` opens as well.
 *
 * @param path Path of the view, which is read when the address asks for the dialog.
 */
export function useCreateDialog(
  path: readonly string[],
  { needs, make = "true" }: {
    /** Role without which the address does not open the dialog. */
    readonly needs: AdminRole;
    /** Value of `make` that opens this dialog. */
    readonly make?: string;
  },
): readonly [open: boolean, setOpen: (open: boolean) => void] {
  const { search } = useRoute();
  const asked = search.get("make") === make;
  const isKnown = useRole() !== undefined;
  const refusal = useRefusal(needs);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!asked || !isKnown) return;
    if (refusal === undefined) setOpen(true);
    else showToast(`${refusal}.`, { tone: "bad" });
    // Remove the parameter so that a shared link or the back button does not open the dialog again.
    const { make: _, ...others } = Object.fromEntries(search);
    replace(path, others);
  }, [asked, isKnown, refusal]);
  return [open, setOpen];
}
