/** Messages between the main process and a folder process: one job and one answer, each a line of JSON. */

/** A method call on the folder target; `open` tests the folder. */
export type FolderJob =
  & { readonly folder: string }
  & (
    | { readonly call: "open" | "check" | "list" }
    | { readonly call: "put" | "bring"; readonly name: string; readonly path: string }
    | { readonly call: "remove"; readonly name: string }
  );

export type FolderAnswer =
  /** `names` is empty except for `list`, and for `bring` if the backup exists. */
  | { readonly ok: true; readonly names: readonly string[] }
  /** `told`: the message is suitable for users. */
  | { readonly ok: false; readonly message: string; readonly told: boolean };
