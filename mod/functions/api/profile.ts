/** `defineProfile`: what an app keeps of its users beside what the service does, as the export `profile` of `auth.ts`. */
import { z } from "zod";
import { zod } from "./current_zod.ts";
import { isZodSchema } from "./registration.ts";
import { TableBuilder } from "./schema.ts";
import type { FieldNames, FieldPath, ProfileMark, ProfileSource, ProfileTypes } from "./values.ts";
import { issueText } from "./zod_issues.ts";

export interface ProfileOptions {
  /**
   * What a new user's profile takes from a provider or from the token of an issuer. Fields that do not fit the schema are
   * left out: what others say of somebody is no reason to refuse them.
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
        `Every field of a profile needs a default or has to be optional, because users come by ways that say nothing of it: ${
          issueText(empty.error, "")
        }`,
      );
    }
  }

  /** An index of `_users` on fields of the profile, which stand in it as `profile.<field>`. */
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

  /** What the profile of a new user begins with: the defaults, and what of the source fits. */
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
 * The profile of this app's users: fields that every user has in `_users` as `profile`. App code changes them with
 * `ctx.db.patch(userId, { profile })`; each has a default or is optional.
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
        `"${field}" cannot be the name of a profile's field: use a letter and up to 63 letters, digits or _`,
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
