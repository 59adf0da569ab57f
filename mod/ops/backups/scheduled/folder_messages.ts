/** What main and the process for a folder say to one another: one job and one answer, each a line of JSON. */

/** A method of the folder, with what it is given; `open` tries the folder. */
export type FolderJob =
  & { readonly folder: string }
  & (
    | { readonly call: "open" | "check" | "list" }
    | { readonly call: "put" | "bring"; readonly name: string; readonly path: string }
    | { readonly call: "remove"; readonly name: string }
  );

export type FolderAnswer =
  /** `names` is empty for all but `list`, and for `bring` when there is none of that name. */
  | { readonly ok: true; readonly names: readonly string[] }
  /** `told`: the message is one for people. */
  | { readonly ok: false; readonly message: string; readonly told: boolean };
