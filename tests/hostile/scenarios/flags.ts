/** Flags of servers that scenarios share. */

/** The server's share of the memory is small on a machine this small. It has a static folder, too. */
export const SMALL_WITH_PAGES: readonly string[] = [
  ...["--memory", "1GiB"],
  ...["--static", "examples/todo/public"],
];
