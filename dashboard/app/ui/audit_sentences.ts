/** Describes entries of the audit log in a sentence, with a link to what was changed. */
import { href } from "../shell/route.ts";
import { countOf, timeText } from "./format.tsx";
import { labelOf } from "./setting_words.ts";

export interface AuditAction {
  readonly action: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly changes?: readonly { readonly setting: string }[] | undefined;
}

export interface Sentence {
  /** Follows the administrator, such as "deleted". */
  readonly verb: string;
  /** The changed object, if the sentence names it. */
  readonly subject?: string;
  /** Address of the view of the subject. */
  readonly to?: string;
  /** Follows the subject. */
  readonly rest?: string;
}

/** Names a user by email address, otherwise by ID. */
type NameOf = (caller: string) => string;

type Describe = (args: (name: string) => string, nameOf: NameOf) => Sentence;

/** Lists in arguments are recorded as their length, such as `(3)`, and objects as their fields, such as `(title, state)`. */
const inner = (text: string): string => text.replace(/^\(|\)$/g, "");

const documentsText = (list: string): string => {
  const known = /^\((\d+)\)$/.exec(list)?.[1];
  return known === undefined ? list : countOf(Number(known), "document");
};

/** Whether the recorded IDs are a single one. */
const isOneId = (ids: string): boolean => ids !== "" && !/^\(|, /.test(ids);

/** The earlier state that was restored. */
const stateOf = (arg: (name: string) => string): string => ` as of ${timeText(Number(arg("restored")))}`;

const documentOf = (table: string, id: string): Pick<Sentence, "subject" | "to"> =>
  table === "" ? { subject: id } : { subject: `${table}/${id}`, to: href(["data", table, id]) };

const user = (verb: string, rest?: string): Describe => (arg, nameOf) => ({
  verb,
  subject: nameOf(`user:${arg("userId")}`),
  to: href(["users", arg("userId")]),
  ...(rest !== undefined && { rest }),
});

const named = (verb: string, name: string): Describe => (arg) => ({ verb, subject: arg(name) });
const plain = (verb: string): Describe => () => ({ verb });

const migration: Describe = (arg) => ({
  verb: "started the migration",
  subject: arg("path"),
  to: href(["deploying"]),
  ...(arg("table") !== "" && { rest: ` of ${arg("table")}` }),
});

const key = (verb: string): Describe => (arg) => ({
  verb: `${verb} the ${arg("deploy") === "true" ? "deploy key" : "API key"}`,
  subject: arg("name"),
});

const ACTIONS: Readonly<Record<string, Describe>> = {
  "_admin/data:insert": (arg) => {
    const [table, ids] = [arg("table"), arg("ids")];
    if (arg("restored") !== "") return { verb: "restored", ...documentOf(table, ids), rest: stateOf(arg) };
    if (isOneId(ids)) return { verb: "added", ...documentOf(table, ids) };
    return {
      verb: `added ${documentsText(arg("documents"))} to`,
      subject: table,
      to: href(["data", table]),
      ...(ids !== "" && !ids.startsWith("(") && { rest: `: ${ids}` }),
    };
  },
  "_admin/data:patch": (arg) => ({
    verb: "changed",
    ...documentOf(arg("table"), arg("id")),
    rest: `: ${
      [inner(arg("set")), inner(arg("unset"))].filter((names) => names !== "" && names !== "0").join(", ")
    }`,
  }),
  "_admin/data:patchMany": (arg) => ({
    verb: `changed a field of ${documentsText(arg("changes"))} of`,
    subject: arg("table"),
    to: href(["data", arg("table")]),
  }),
  "_admin/data:replace": (arg) =>
    arg("restored") === ""
      ? { verb: "saved", ...documentOf(arg("table"), arg("id")) }
      : { verb: "restored", ...documentOf(arg("table"), arg("id")), rest: stateOf(arg) },
  "_admin/data:remove": (arg) => {
    const [table, ids] = [arg("table"), arg("ids")];
    // The IDs of a few documents are recorded as a list. The view of a single one offers its history.
    if (isOneId(ids)) return { verb: "deleted", ...documentOf(table, ids) };
    return { verb: `deleted ${documentsText(ids)} of`, subject: table, to: href(["data", table]) };
  },
  "_admin/data:deleteWhere": (arg) => ({
    verb: "started to delete documents of",
    subject: arg("table"),
    to: href(["data", arg("table")]),
  }),
  "_admin/work:cancel": plain("canceled a background task"),
  "_admin/work:forget": plain("dismissed a failed background task"),
  "_admin/users:create": named("created the user", "email"),
  "_admin/users:edit": user("changed the user"),
  "_admin/users:setPassword": user("set the password of"),
  "_admin/users:sendReset": user("sent a password reset to"),
  "_admin/users:sendVerification": user("sent a verification mail to"),
  "_admin/users:endSession": plain("ended a session of a user"),
  "_admin/users:endSessions": user("ended all sessions of"),
  "_admin/users:remove": user("deleted the user"),
  "_admin/users:removeFactors": user("removed the second factor of"),
  "_admin/users:removePasskey": user("removed a passkey of"),
  "_admin/administrators:create": named("created the administrator", "email"),
  "_admin/administrators:remove": (arg, nameOf) => ({
    verb: "removed the administrator",
    subject: nameOf(`admin:${arg("adminId")}`),
  }),
  "_admin/administrators:setRole": (arg, nameOf) => ({
    verb: "changed the role of",
    subject: nameOf(`admin:${arg("adminId")}`),
    rest: ` to ${arg("role")}`,
  }),
  "_admin/administrators:endOwnSessions": plain("ended their own other sessions"),
  "_admin/administrators:endSession": plain("ended a session of an administrator"),
  "_admin/administrators:endSessions": (arg, nameOf) => ({
    verb: "ended the sessions of",
    subject: nameOf(`admin:${arg("adminId")}`),
  }),
  "_admin/administrators:changePassword": plain("changed their own password"),
  "_admin/administrators:confirmPassword": plain("confirmed their identity with their password"),
  "_admin/administrators:removeFactors": (arg, nameOf) => ({
    verb: "removed the second factor of",
    subject: nameOf(`admin:${arg("adminId")}`),
  }),
  "_admin/administrators:startTotp": plain("started to set up a second factor"),
  "_admin/administrators:confirmTotp": plain("set up their own second factor"),
  "_admin/administrators:proveFactor": plain("confirmed their identity with their second factor"),
  "_admin/administrators:removeTotp": plain("removed their own second factor"),
  "_admin/administrators:startPasskey": plain("started to add a passkey"),
  "_admin/administrators:addPasskey": named("added a passkey", "name"),
  "_admin/administrators:startPasskeyProof": plain("started to confirm their identity with a passkey"),
  "_admin/administrators:provePasskey": plain("confirmed their identity with a passkey"),
  "_admin/administrators:renamePasskey": named("renamed a passkey of their own to", "name"),
  "_admin/administrators:removePasskey": plain("removed a passkey of their own"),
  "_admin/administrators:renewRecoveryCodes": plain("renewed their own recovery codes"),
  "_admin/alerts:acknowledge": named("acknowledged the issue", "text"),
  "_admin/alerts:mute": named("muted the issue", "text"),
  "_admin/alerts:resume": plain("undid the acknowledgement of an issue"),
  "_admin/alerts:test": plain("sent a test alert"),
  "_admin/settings:testMail": named("sent a test mail to", "to"),
  "_admin/settings:testProvider": named("tested the sign-in provider", "name"),
  "_admin/settings:testBucket": named("tested the bucket", "location"),
  "_admin/functions:run": (arg) => ({
    verb: "ran",
    subject: arg("path"),
    to: href(["functions", arg("path")]),
  }),
  "_admin/functions:console": (arg) =>
    arg("path") === ""
      ? {
        verb: "ran a query of the console",
        ...(arg("tables") !== "" && { rest: ` on ${arg("tables")}` }),
      }
      : { verb: "explained", subject: arg("path"), to: href(["functions", arg("path")]) },
  "_admin/files:remove": (arg) => ({ verb: "deleted files", rest: `: ${inner(arg("fileIds"))}` }),
  "_admin/files:uploadUrl": plain("started to upload a file"),
  "_admin/schedule:cancelJob": plain("canceled a scheduled function"),
  "_admin/schedule:runJobNow": plain("ran a scheduled function early"),
  "_admin/schedule:retryJob": plain("scheduled a failed function again"),
  "_admin/schedule:runCronNow": (arg) => ({
    verb: "ran the cron job",
    subject: arg("name"),
    to: href(["schedule"]),
  }),
  "_admin/migrations:begin": migration,
  "_admin/migrations:run": migration,
  "_admin/migrations:halt": plain("stopped a migration"),
  "_admin/env:set": (arg) => ({ verb: "changed variables", rest: `: ${inner(arg("changes"))}` }),
  "_admin/apiKeys:create": key("created"),
  "_admin/apiKeys:revoke": key("revoked"),
};

const VERSION_CHARS = 12;

const version = (verb: string): Describe => (arg) => ({
  verb,
  subject: arg("hash").slice(0, VERSION_CHARS),
  to: href(["versions"]),
});

/** Requests by method and path, and tools of agents; the group of the pattern is the name in the path. */
const REQUESTS: readonly (readonly [RegExp, (name: string) => Describe])[] = [
  [/^PUT \/api\/admin\/functions$/, () => version("deployed version")],
  [/^POST \/api\/admin\/functions\/rollback$/, () => version("rolled back to version")],
  [/^PATCH \/api\/admin\/functions\/env$/, () => (arg) => ({
    verb: "changed variables",
    rest: `: ${arg("variables")}`,
  })],
  [/^mcp:(\w+)$/, (tool) => (arg) => ({
    verb: "used the agent tool",
    subject: tool,
    rest: arg("path") === "" ? "" : `: ${arg("path")}`,
  })],
  [/^POST \/api\/admin\/impersonate$/, () => user("signed in as")],
  [/^POST \/api\/admin\/import\/(.+)$/, (table) => (arg) => ({
    verb: "imported a file into",
    subject: table,
    to: href(["data", table]),
    // The client names it.
    rest: (arg("source") === "" ? "" : ` (source given: ${arg("source")})`) +
      (arg("mode") === "replace" ? ", after deleting all of its documents" : ""),
  })],
  [/^(?:GET|POST) \/api\/admin\/export\/(.+)$/, (table) => (arg) => ({
    verb: arg("where") === "" ? "exported" : "exported filtered rows of",
    subject: table,
    to: href(["data", table]),
  })],
  [/^GET \/api\/admin\/restore\/export\/(.+)$/, (table) => () => ({
    verb: "read",
    subject: table,
    rest: " of the prepared restore",
  })],
  [/^POST \/api\/admin\/backups$/, () => plain("made a backup")],
  [/^GET \/api\/admin\/(?:scheduled-)?backups\/(.+)$/, (name) => () => ({
    verb: "downloaded the backup",
    subject: name,
  })],
  [/^DELETE \/api\/admin\/backups\/(.+)$/, (name) => () => ({ verb: "deleted the backup", subject: name })],
  [/^POST \/api\/admin\/(?:scheduled-)?backups\/(.+)\/verify$/, (name) => () => ({
    verb: "verified the backup",
    subject: name,
  })],
  [/^POST \/api\/admin\/(?:scheduled-)?backups\/(.+)\/restore$/, (name) => () => ({
    verb: "prepared the restore of the backup",
    subject: name,
  })],
  [/^POST \/api\/admin\/(?:scheduled-)?backups\/[^/]+\/export\/(.+)$/, (table) => () => ({
    verb: "read",
    subject: table,
    rest: " of a backup",
  })],
  [/^POST \/api\/admin\/restore$/, () => plain("prepared the restore of an uploaded archive")],
  [/^POST \/api\/admin\/restore\/point-in-time$/, () => plain("prepared the restore of a point in time")],
  [/^POST \/api\/admin\/restore\/point-in-time\/export\/(.+)$/, (table) => () => ({
    verb: "read",
    subject: table,
    rest: " as of a point in time",
  })],
  [/^POST \/api\/admin\/restore\/restart$/, () => plain("restarted the server to apply a restore")],
  [/^DELETE \/api\/admin\/restore$/, () => plain("canceled the prepared restore")],
  [/^POST \/api\/admin\/replication\/snapshot$/, () => plain("took a snapshot for the replica")],
  [
    /^POST \/api\/admin\/(?:places\/(.+)|scheduled-backups)\/check$/,
    () => plain("tested a storage location"),
  ],
];

/** Returns the sentence of an entry; unknown actions are named as they were recorded. */
export function sentenceOf({ action, args, changes }: AuditAction, nameOf: NameOf): Sentence {
  const arg = (name: string) => args[name] === undefined || args[name] === null ? "" : String(args[name]);
  if (changes !== undefined) {
    const names = changes.map(({ setting }) => labelOf(setting)).join(", ");
    return {
      verb: "changed settings",
      rest: `: ${names}`,
      to: href(["settings", changes[0]?.setting ?? ""]),
    };
  }
  const known = ACTIONS[action];
  if (known !== undefined) return known(arg, nameOf);
  for (const [pattern, describe] of REQUESTS) {
    const match = pattern.exec(action);
    if (match !== null) return describe(decodeURIComponent(match[1] ?? ""))(arg, nameOf);
  }
  return { verb: action };
}
