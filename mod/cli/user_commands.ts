/** The commands `users ...`: manage the users of a running server. */
import type { OptionValues } from "../config/options.ts";
import { StartError } from "../config/start_error.ts";
import { generatedPassword, readPassword } from "./admin_commands.ts";
import type { CommandSpec } from "./command_line.ts";
import { type CallServer, withRunningServer } from "./running_server.ts";

interface User {
  readonly userId: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
  readonly createdAt: number;
  readonly sessions: number;
}

const EMAIL = { name: "email", description: "Email address or id of the user" };
const USERS_SHOWN = 100;

export const userCommands: readonly CommandSpec[] = [
  {
    name: "users list",
    description: "List the newest users, or search for users",
    argument: { name: "search", description: "Words from the address or name", optional: true },
    run: ({ data }, search) => withRunningServer(data, (call) => list(call, search)),
  },
  {
    name: "users create",
    description: "Create a user; prints a generated password unless one is provided",
    argument: { ...EMAIL, description: "Email address of the user" },
    run: (options, email) =>
      withPassword(options, async (call, password) => {
        await call("_admin/users:create", { email, password });
        return `Created user ${email}.`;
      }),
  },
  {
    name: "users verify",
    description: "Mark the email address of a user as verified",
    argument: EMAIL,
    run: ({ data }, email) =>
      withRunningServer(data, async (call) => {
        const { userId } = await find(call, email);
        await call("_admin/users:edit", { userId, emailVerified: true });
        return `The address of ${email} is verified.`;
      }),
  },
  {
    name: "users set-password",
    description: "Set a new password for a user and end their sessions",
    argument: EMAIL,
    run: (options, email) =>
      withPassword(options, async (call, password) => {
        const { userId } = await find(call, email);
        const { ended } = await call("_admin/users:setPassword", { userId, password }) as { ended: number };
        return `Set the password of ${email}, ended ${counted(ended, "session")}.`;
      }),
  },
  {
    name: "users revoke-sessions",
    description: "End all sessions of a user",
    argument: EMAIL,
    run: ({ data }, email) =>
      withRunningServer(data, async (call) => {
        const { userId } = await find(call, email);
        return `Ended ${
          counted(await call("_admin/users:endSessions", { userId }) as number, "session")
        } of ${email}.`;
      }),
  },
  {
    name: "users delete",
    description: "Delete a user and all documents of the app that belong to them",
    argument: EMAIL,
    run: ({ data }, email) =>
      withRunningServer(data, async (call) => {
        const { userId } = await find(call, email);
        const { deleted } = await call("_admin/users:remove", { userId }) as { deleted: number };
        return `Deleted ${email} and ${counted(deleted, "document")} of theirs.`;
      }),
  },
];

async function list(call: CallServer, search: string): Promise<string> {
  const users = await found(call, search);
  if (users.length === 0) return search === "" ? "There are no users." : "No users found.";
  return users.map(({ userId, email, emailVerified, name, createdAt, sessions }) =>
    [
      email ?? "(no address)",
      ...emailVerified ? [] : ["not verified"],
      ...name === null ? [] : [name],
      `created ${new Date(createdAt).toISOString()}`,
      `sessions ${sessions}`,
      userId,
    ].join("  ")
  ).join("\n");
}

async function found(call: CallServer, search: string): Promise<readonly User[]> {
  const paginationOpts = { cursor: null, numItems: USERS_SHOWN };
  const { page } = await call("_admin/users:list", { paginationOpts, search }) as { page: readonly User[] };
  return page;
}

/** Returns the user with exactly this address or id. */
async function find(call: CallServer, wanted: string): Promise<User> {
  const user = (await found(call, wanted)).find(({ email, userId }) =>
    userId === wanted || email === wanted.trim().toLowerCase()
  );
  if (user === undefined) throw new StartError(`User ${wanted} does not exist.`);
  return user;
}

async function withPassword(
  { data, passwordStdin }: OptionValues,
  command: (call: CallServer, password: string) => Promise<string>,
): Promise<number> {
  const password = passwordStdin ? await readPassword() : generatedPassword();
  return await withRunningServer(data, async (call) => {
    const text = await command(call, password);
    return passwordStdin ? text : `${text}\nPassword: ${password}`;
  });
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
