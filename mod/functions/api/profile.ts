/** `defineProfile` defines the app's own fields of users, as the export `profile` of `auth.ts`. */
import { z } from "zod";
import { zod } from "./current_zod.ts";
import { isZodSchema } from "./registration.ts";
import { TableBuilder } from "./schema.ts";
import type { FieldNames, FieldPath, ProfileMark, ProfileSource, ProfileTypes } from "./values.ts";
import { issueText } from "./zod_issues.ts";

export interface ProfileOptions {
  /**
   * Initial profile fields taken from a provider or external token. Fields that do not match the schema are dropped: data from
   * elsewhere is not a reason to refuse a user.
   */
  readonly fill?: (source: ProfileSource) => Readonly<Record<string, unknown>> | undefined;
}

type Shape = Readonly<Record<string, z.ZodType>>;

type ProfileOfShape<Fields extends Shape> = {
  readonly fields: z.output<z.ZodObject<Fields>> & Record<string, unknown>;
  readonly input: z.input<z.ZodObject<Fields>> & Record<string, unknown>;
  readonly indexes: Record<never, never>;
};

type Below<Names extends FieldNames> = { [At in keyof Names]: `profile.${Names[At]}` };

type WithIndex<Types extends ProfileTypes, Name extends string, Names extends FieldNames> =
  & Omit<Types, "indexes">
  & { readonly indexes: Types["indexes"] & Record<Name, Below<Names>> };

/** A profile under construction: each call adds an index to `_users`. */
export class ProfileBuilder<Types extends ProfileTypes = ProfileTypes> implements ProfileMark {
  declare readonly "~profile": Types;
  readonly #schema: z.ZodObject;
  readonly #fill: NonNullable<ProfileOptions["fill"]>;
  readonly #indexes: { readonly name: string; readonly fields: readonly string[] }[] = [];

  constructor(shape: Shape, { fill = () => undefined }: ProfileOptions) {
    this.#schema = zod.strictObject(shape as Record<string, z.ZodType>) as z.ZodObject;
    this.#fill = fill;
    const empty = this.#schema.safeParse({});
    if (!empty.success) {
      throw new TypeError(
        `Every profile field needs a default or must be optional, because new users may not provide it: ${
          issueText(empty.error, "")
        }`,
      );
    }
  }

  /** Adds an index of `_users` on profile fields, which are stored as `profile.<field>`. */
  index<Name extends string, const Names extends readonly FieldPath<Types["fields"]>[]>(
    name: Name,
    fields: Names,
  ): ProfileBuilder<WithIndex<Types, Name, Names extends FieldNames ? Names : never>> {
    this.#indexes.push({ name, fields: fields.map((field) => `profile.${field}`) });
    return this as never;
  }

  /** The table `_users` with this profile. */
  static extend(profile: ProfileBuilder, users: TableBuilder): TableBuilder {
    const extended = users.extended({ profile: profile.#schema.optional() });
    for (const { name, fields } of profile.#indexes) extended.index(name, fields as never);
    TableBuilder.check("_users", extended);
    return extended;
  }

  /** Returns the initial profile of a new user: the defaults, and valid fields of the source. */
  static begin(profile: ProfileBuilder, source: ProfileSource): Record<string, unknown> {
    const schema = profile.#schema;
    const filled: Record<string, unknown> = {};
    for (const [field, value] of Object.entries(profile.#fill(source) ?? {})) {
      if (value === undefined || !Object.hasOwn(schema.shape, field)) continue;
      if (schema.safeParse({ ...filled, [field]: value }).success) filled[field] = value;
    }
    return schema.parse(filled);
  }
}

/**
 * Defines the profile of this app's users: fields stored in `_users` as `profile`. App code changes them with
 * `ctx.db.patch(userId, { profile })`. Each field needs a default or must be optional.
 *
 * @example
 * ```ts
 * // auth.ts
 * export const profile = defineProfile({
 *   role: z.enum(["member", "editor"]).default("member"),
 *   picture: z.url().optional(),
 * }, { fill: ({ claims }) => ({ picture: claims.picture }) }).index("by_role", ["role"]);
 * ```
 */
export function defineProfile<const Fields extends Shape>(
  fields: Fields,
  options: ProfileOptions = {},
): ProfileBuilder<ProfileOfShape<Fields>> {
  for (const [field, schema] of Object.entries(fields)) {
    if (!isZodSchema(schema)) throw new TypeError(`Field "${field}" of the profile is not a zod schema`);
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(field)) {
      throw new TypeError(
        `Invalid profile field "${field}": names are a letter followed by up to 63 letters, digits or _`,
      );
    }
  }
  return new ProfileBuilder<ProfileOfShape<Fields>>(fields, options);
}

/**
 * The profile of a user as it is read.
 *
 * @example
 * ```ts
 * type Profile = ProfileOf<typeof profile>;
 * ```
 */
export type ProfileOf<P extends ProfileMark> = P["~profile"]["fields"];
