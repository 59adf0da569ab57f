/** The command palette: finds views, tables, functions, users, settings and commands by name. */
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { type AdminRole, isAllowed } from "../../../mod/functions/admin_roles.ts";
import { api } from "../server/api.ts";
import { adminSession } from "../server/admin_session.ts";
import { useRole } from "../ui/access.tsx";
import { Icon, type IconName } from "../ui/controls.tsx";
import { type RefObject, useEffect, useRef, useState } from "react";
import { useQuery } from "syncline/react";
import { hrefOfDocument } from "../views/data/cell.tsx";
import { ERRORS } from "../server/outcomes.ts";
import { labelOf, sectionsOf } from "../ui/setting_words.ts";
import { focusedElement, restoreFocus } from "../ui/focus.ts";
import { href } from "./route.ts";
import { toggleTheme } from "./theme.ts";
import { views } from "./views.ts";

/** Keys typed before the palette has opened, and the time of the first one by `performance.now()`. */
export type Typed = { text: string; readonly at: number } | null;

export function Palette({ typed, onClose }: {
  /** Set to `null` when the palette has the focus. */
  readonly typed: RefObject<Typed>;
  readonly onClose: () => void;
}) {
  const [openedFrom] = useState(focusedElement);
  const left = useRef(false);
  return (
    <Dialog.Root open onOpenChange={(now) => now || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="overlay" />
        <Dialog.Content
          className="dialog palette"
          aria-describedby={undefined}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            restoreFocus(left.current ? null : openedFrom);
          }}
        >
          <Dialog.Title className="sr-only">Command palette</Dialog.Title>
          <Entries
            typed={typed}
            onChosen={() => {
              left.current = true;
              onClose();
            }}
          />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

const wordsOf = (text: string) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

/**
 * Ranks a match at the start of the name above one at the start of its words, that above one inside a word, and names above
 * keywords. Each word of the search may match another word of the entry.
 */
function scoreOf(value: string, search: string, keywords: readonly string[] = []): number {
  const wanted = search.trim().toLowerCase();
  const name = value.toLowerCase();
  const wantedWords = wordsOf(search);
  const begin = (words: readonly string[]) =>
    wantedWords.length > 0 && wantedWords.every((wanted) => words.some((word) => word.startsWith(wanted)));
  const words = wordsOf(value);
  if (name.startsWith(wanted)) return 1;
  if (begin(words)) return 0.9;
  if (name.includes(wanted)) return 0.7;
  return begin([...words, ...keywords.flatMap(wordsOf)]) ? 0.5 : 0;
}

/**
 * Ranks an entry by the share of the characters of the search that it matches, if no entry matches all of it. Words of titles
 * have twice the weight of keywords, and descriptions have none. In some scripts, one character is a whole word.
 */
function partialScoreOf(
  value: string,
  search: string,
  [title = "", , ...words]: readonly string[] = [],
): number {
  const wanted = wordsOf(search);
  const titles = [value, title].flatMap(wordsOf);
  const others = words.flatMap(wordsOf);
  const weightOf = (wanted: string) => {
    const matches = (word: string) => word.startsWith(wanted);
    return titles.some(matches) ? 1 : others.some(matches) ? 0.5 : 0;
  };
  const matched = wanted.reduce((sum, word) => sum + word.length * weightOf(word), 0);
  return matched === 0 ? 0 : 0.5 * matched / wanted.join("").length;
}

type Group = readonly [heading: string, entries: readonly Entry[]];

/** Returns the entries that match, best first, in groups with the best match first. */
function matchesOf(groups: readonly Group[], text: string): readonly Group[] {
  if (text.trim() === "") return groups;
  const scored = (score: typeof scoreOf) =>
    groups.map(([heading, entries]) => ({
      heading,
      entries: entries.map((entry) => ({ entry, score: score(entry.value, text, keywordsOf(entry)) }))
        .filter(({ score }) => score > 0).toSorted((a, b) => b.score - a.score),
    })).filter(({ entries }) => entries.length > 0);
  const whole = scored(scoreOf);
  return (whole.length > 0 ? whole : scored(partialScoreOf))
    .toSorted((a, b) => (b.entries[0]?.score ?? 0) - (a.entries[0]?.score ?? 0))
    .map(({ heading, entries }) => [heading, entries.map(({ entry }) => entry)]);
}

/** Unlike `go`, asks about unsaved edits. */
function visit(...to: Parameters<typeof href>): void {
  location.hash = href(...to);
}

interface Entry {
  readonly icon: IconName;
  readonly text: string;
  /** Unique; the search matches against it. */
  readonly value: string;
  readonly words?: readonly string[];
  /** Only searches that match completely find its words. */
  readonly description?: string;
  /** Role without which the entry is left out. */
  readonly needs?: AdminRole;
  readonly run: () => void;
}

/** The keywords of an entry, as the scores expect them. */
const keywordsOf = ({ text, description = "", words = [] }: Entry): string[] => [text, description, ...words];

/** Minimum length of a search for users, which runs on the server. */
const SEARCHED_FROM = 2;
const USERS_FOUND = 5;
const DAY_MS = 86_400_000;
/** Matches document IDs. */
const ID = /^[0-9a-z]{16,64}$/;

function Entries({ typed, onChosen }: { readonly typed: RefObject<Typed>; readonly onChosen: () => void }) {
  const [text, setText] = useState(typed.current?.text ?? "");
  useEffect(() => {
    if (typed.current !== null) setText(typed.current.text);
    typed.current = null;
  }, [typed]);
  const role = useRole();
  const isOffered = ({ needs }: Entry) => needs === undefined || role !== undefined && isAllowed(role, needs);
  const groups = useEntries(text.trim()).map(([heading, entries]): Group => [
    heading,
    entries.filter(isOffered),
  ]);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The library highlights nothing if the highlighted entry is replaced, such as by users that were found.
    if (root.current?.querySelector("[role=option][aria-selected=true]") !== null) return;
    root.current.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
  });
  return (
    <Command label="Command palette" shouldFilter={false} ref={root}>
      <Command.Input
        placeholder="Go to a table, a function, a view…"
        autoFocus
        value={text}
        onValueChange={setText}
      />
      <Command.List>
        <Command.Empty>No results.</Command.Empty>
        {matchesOf(groups, text).map(([heading, entries]) =>
          entries.length > 0 && (
            <Command.Group key={heading} heading={heading}>
              {entries.map(({ icon, text, value, run }) => (
                <Command.Item
                  key={value}
                  value={value}
                  onSelect={() => {
                    onChosen();
                    run();
                  }}
                >
                  <Icon name={icon} /> {text}
                </Command.Item>
              ))}
            </Command.Group>
          )
        )}
      </Command.List>
    </Command>
  );
}

/** The document with an ID, or the history of a deleted one. */
function useDocument(id: string | null): readonly Entry[] {
  const found = useQuery(api.data.get, id === null ? "skip" : { id });
  const table = useQuery(api.data.tableOf, id === null ? "skip" : { id });
  if (id === null || found === undefined) return [];
  const owner = found?.table ?? table ?? null;
  return [
    ...owner === null ? [] : [{
      icon: "data" as const,
      text: `${id} of ${owner}${found === null ? " does not exist: see its history" : ""}`,
      value: id,
      run: () => location.hash = hrefOfDocument(owner, id),
    }],
    {
      icon: "audit",
      text: `Entries of the audit log with ${id}`,
      value: `${id} in the audit log`,
      run: () => visit(["audit"], { text: id }),
    },
  ];
}

function useEntries(text: string): readonly Group[] {
  const tables = useQuery(api.data.tables) ?? [];
  const functions = useQuery(api.functions.list) ?? [];
  const settings = useQuery(api.settings.list) ?? [];
  const users = useQuery(
    api.users.list,
    text.length < SEARCHED_FROM
      ? "skip"
      : { search: text, paginationOpts: { numItems: USERS_FOUND, cursor: null } },
  )?.page ?? [];
  const documents = useDocument(ID.test(text) ? text : null);
  return [
    ["Documents", documents],
    [
      "Views",
      views.map(({ name, title, icon, words }) => ({
        icon,
        text: title,
        value: title,
        words: [words],
        run: () => visit([name]),
      })),
    ],
    ["Commands", actions.map((action) => ({ ...action, value: action.text }))],
    [
      "Tables",
      tables.flatMap(({ name, ofService, orphaned }) => [
        {
          icon: "data" as const,
          text: name,
          value: `table ${name}`,
          run: () => visit(["data", name]),
        },
        ...text === "" || ofService || orphaned ? [] : [{
          icon: "data" as const,
          text: `Import into ${name}…`,
          value: `import into ${name}`,
          words: ["csv jsonl json lines file upload documents load rows"],
          needs: "editor" as const,
          run: () => visit(["data", name], { make: "import" }),
        }],
      ]),
    ],
    [
      "Functions",
      functions.filter(({ ofService }) => !ofService).map(({ path }) => ({
        icon: "functions" as const,
        text: path,
        value: `function ${path}`,
        run: () => visit(["functions", path]),
      })),
    ],
    [
      "Users",
      users.map(({ userId, email, name }) => ({
        icon: "users" as const,
        text: [email, name].filter(Boolean).join(", ") || userId,
        value: `user ${userId}`,
        words: [text],
        run: () => visit(["users", userId]),
      })),
    ],
    [
      "Settings",
      sectionsOf(settings).flatMap(({ name, title, text, words = "", settings }) => [
        {
          icon: "settings" as const,
          text: title,
          value: `settings ${name}`,
          words: [words],
          description: text,
          run: () => visit(["settings", name]),
        },
        ...settings.map(({ name, description }) => ({
          icon: "settings" as const,
          text: `${title}: ${labelOf(name)}`,
          value: `setting ${name}`,
          words: [name.replace(/([A-Z])/g, " $1")],
          description,
          run: () => visit(["settings", name]),
        })),
      ]),
    ],
  ];
}

const actions: readonly Omit<Entry, "value">[] = [
  {
    icon: "audit",
    text: "Find who changed or deleted a document",
    words: ["removed edited history audit undo"],
    run: () => visit(["audit"], { action: "_admin/data:" }),
  },
  {
    icon: "data",
    text: "Undo a wrong edit of a document",
    words: ["restore earlier state history change"],
    run: () => visit(["data"]),
  },
  {
    icon: "data",
    text: "Export documents of a table",
    words: ["csv json lines download"],
    run: () => visit(["data"]),
  },
  {
    icon: "logs",
    text: "Export runs and errors",
    words: ["logs json lines download failures"],
    run: () => visit(["logs"]),
  },
  {
    icon: "functions",
    text: "Slow queries and missing indexes",
    words: ["slowest query index performance explain"],
    run: () => visit(["functions"]),
  },
  {
    icon: "key",
    text: "Rotate a deploy key or API key",
    words: ["replace revoke token"],
    run: () => visit(["deploying"]),
  },
  {
    icon: "backups",
    text: "Back up now",
    needs: "editor",
    run: () => visit(["backups"], { make: "true" }),
  },
  {
    icon: "backups",
    text: "Restore one table or everything",
    words: ["earlier state yesterday undo point in time backup recover"],
    run: () => visit(["backups"]),
  },
  {
    icon: "users",
    text: "New user",
    needs: "editor",
    run: () => visit(["users"], { make: "true" }),
  },
  {
    icon: "key",
    text: "New administrator",
    words: ["access invite viewer editor owner account role"],
    needs: "owner",
    run: () => visit(["administrators"], { make: "true" }),
  },
  {
    icon: "key",
    text: "New API key",
    words: ["create token rotate"],
    needs: "owner",
    run: () => visit(["deploying"], { make: "true" }),
  },
  {
    icon: "key",
    text: "New deploy key",
    words: ["create token rotate"],
    needs: "owner",
    run: () => visit(["deploying"], { make: "deploy" }),
  },
  {
    icon: "logs",
    text: "Errors in the last 24 hours",
    words: ["failed runs failures yesterday last night"],
    run: () => visit(["logs"], { outcome: ERRORS, from: String(Date.now() - DAY_MS) }),
  },
  {
    icon: "logs",
    text: "Errors in the last 7 days",
    words: ["failed runs failures week export"],
    run: () => visit(["logs"], { outcome: ERRORS, from: String(Date.now() - 7 * DAY_MS) }),
  },
  {
    icon: "theme",
    text: "Switch theme",
    run: toggleTheme,
  },
  { icon: "out", text: "Sign out", run: () => void adminSession.signOut() },
];
