/** The tables of a cluster and all its statements: SQL of PostgreSQL 13 and later. */
import type { Statement } from "./connection.ts";

/** Incremented when older servers cannot use the tables. */
export const FORMAT = 2;

/**
 * Returns the SQL that creates the tables, for one transaction with the cluster's row. `until_seq` of a version is the row that
 * named another one.
 */
export function createSql(name: string): string {
  const schema = quoted(name);
  return `
    create table ${schema}.cluster (one int primary key check (one = 1), format int not null, id text not null,
      generation text not null, first_seq bigint not null, first_ts bigint not null, first_sum text not null,
      service_key bytea not null, created_at timestamptz not null default now());
    create table ${schema}.lease (one int primary key check (one = 1), epoch bigint not null, holder text not null,
      address text not null, until timestamptz not null, certificate text not null default '');
    create table ${schema}.log (seq bigint primary key, epoch bigint not null, ts_before bigint not null,
      ts bigint not null, at double precision not null, sum text not null, body bytea not null);
    alter table ${schema}.log alter body set storage external;
    create table ${schema}.snapshots (seq bigint primary key, ts bigint not null, sum text not null,
      name text not null, bytes bigint not null, made_at timestamptz not null default now());
    create table ${schema}.members (holder text primary key, address text not null, role text not null,
      ts bigint not null, seq bigint not null, sockets int not null, seen_at timestamptz not null,
      lag_ms double precision);
    create table ${schema}.versions (hash text primary key, bytes bigint not null, pieces int not null, served_at bigint,
      served_by text not null default '', functions text not null default '{}', until_seq bigint,
      made_at timestamptz not null default now());
    create table ${schema}.version_pieces (hash text not null, piece int not null, body bytea not null,
      primary key (hash, piece));
    alter table ${schema}.version_pieces alter body set storage external;`;
}

export type Statements = ReturnType<typeof statementsFor>;

/** The notification channels of a cluster. */
export const channelsOf = (schema: string) => ({ log: `${schema}_log`, lease: `${schema}_lease` }) as const;

export const quoted = (schema: string) => `"${schema}"`;

export function statementsFor(schemaName: string) {
  const schema = quoted(schemaName);
  const channels = channelsOf(schemaName);
  const named = (name: string, text: string): Statement => ({ name: `syncline_${name}`, text });
  return {
    cluster: named(
      "cluster",
      `select format, id, generation, first_seq, first_ts, first_sum, service_key from ${schema}.cluster`,
    ),
    /** Returns no row if the epoch is over or the previous row is missing. The lock makes a takeover wait for the commit. */
    append: named(
      "append",
      `with added as (
         insert into ${schema}.log (seq, epoch, ts_before, ts, at, sum, body)
         select $2::bigint, l.epoch, $3::bigint, $4::bigint, $5::double precision, $6::text, $7::bytea
         from ${schema}.lease l
         where l.one = 1 and l.epoch = $1::bigint and ($8::bigint = $2::bigint - 1 or
           exists (select from ${schema}.log p where p.seq = $2::bigint - 1))
         for key share of l
         returning seq)
       select seq from added`,
    ),
    /** Returns a row while this server leads and `$2` is the last row of the log. */
    leads: named(
      "leads",
      `select 1 as leads from ${schema}.lease l where l.one = 1 and l.epoch = $1::bigint
         and not exists (select from ${schema}.log where seq > $2::bigint)`,
    ),
    /** A separate statement, because the lock of a notification and the wake-up of all listeners would delay rows. */
    notify: named("notify", `notify ${channels.log}`),
    listen: named("listen", `listen ${channels.log}`),
    /** For the leader, whose own rows would wake it. */
    unlisten: named("unlisten", `unlisten ${channels.log}`),
    sumOf: named("sum_of", `select sum from ${schema}.log where seq = $1::bigint`),
    end: named("end", `select seq, ts, sum from ${schema}.log order by seq desc limit 1`),
    /** The rows after a row, it without its body, and the end of the log. Text, because bytes are sent as hexadecimal. */
    read: named(
      "read",
      `select seq, ts_before, ts, at, sum,
         case when seq > $1::bigint and getdatabaseencoding() = 'UTF8' then convert_from(body, 'UTF8') end as text,
         case when seq > $1::bigint and getdatabaseencoding() <> 'UTF8' then body end as bytes,
         (select seq from ${schema}.log order by seq desc limit 1) as end_seq,
         (select ts from ${schema}.log order by seq desc limit 1) as end_ts from (
         select *, sum(size) over (order by seq) - size as before from (
           select *, case when seq > $1::bigint then octet_length(body) else 0 end as size
           from ${schema}.log where seq >= $1::bigint order by seq limit $2::int) as rows) as sized
       where before < $3::bigint order by seq`,
    ),
    /** The lock waits for rows that are being appended. Later rows find another epoch. */
    take: named(
      "take",
      `with ended as (select one from ${schema}.lease where one = 1 and until < now() for update)
       , taken as (update ${schema}.lease l set holder = $1, address = $2, certificate = $4, epoch = epoch + 1,
         until = clock_timestamp() + $3::double precision * interval '1 millisecond'
       from ended where l.one = ended.one returning epoch)
       select epoch, pg_notify('${channels.lease}', '') from taken`,
    ),
    /** Succeeds until another server has taken the lease, also after its end. Also counts the other live servers. */
    renew: named(
      "renew",
      `update ${schema}.lease set until = clock_timestamp() + $3::double precision * interval '1 millisecond'
       where one = 1 and epoch = $1::bigint and holder = $2
       returning epoch, (select count(*) from ${schema}.members m where m.holder <> $2 and
         m.seen_at > now() - $4::double precision * interval '1 millisecond') as others`,
    ),
    release: named(
      "release",
      // Clears the holder, so that a renewal in flight has no effect. Not synced: taking the lease is, and a lost release only
      // means that the lease expires.
      `with given as (update ${schema}.lease set until = '-infinity', holder = '' where one = 1 and epoch = $1::bigint and holder = $2
         returning epoch)
       select pg_notify('${channels.lease}', ''), set_config('synchronous_commit', 'off', true) from given`,
    ),
    lease: named(
      "lease",
      `select epoch, holder, address, certificate, until > '-infinity' as held, case when until > '-infinity'
         then (extract(epoch from until - now()) * 1000)::double precision else -1 end as left_ms
       from ${schema}.lease where one = 1`,
    ),
    /** Null if the server has no such setting. */
    fsync: named("fsync", `select current_setting('fsync', true) as fsync`),
    snapshots: named(
      "snapshots",
      `select seq, ts, sum, name, bytes, (extract(epoch from now() - made_at) * 1000)::double precision as age_ms
       from ${schema}.snapshots order by seq desc`,
    ),
    /** Oldest first, each with the time of its newest commit by the leader's clock. */
    snapshotTimes: named(
      "snapshot_times",
      `select s.seq, s.ts, s.sum, s.bytes, coalesce(l.at, extract(epoch from s.made_at) * 1000)::double precision as at
       from ${schema}.snapshots s left join ${schema}.log l on l.seq = s.seq order by s.seq`,
    ),
    addSnapshot: named(
      "add_snapshot",
      `insert into ${schema}.snapshots (seq, ts, sum, name, bytes)
       select $2::bigint, $3::bigint, $4, $5, $6::bigint from ${schema}.lease l where l.one = 1 and l.epoch = $1::bigint
       on conflict (seq) do update set name = excluded.name, bytes = excluded.bytes, made_at = now() returning seq`,
    ),
    removeSnapshot: named("remove_snapshot", `delete from ${schema}.snapshots where seq = $1::bigint`),
    /** Removes at most $2 rows, until $3 bytes are removed. The newest row stays, because the next one refers to it. */
    trim: named(
      "trim",
      `delete from ${schema}.log where seq in (
         select seq from (
           select seq, sum(bytes) over (order by seq) - bytes as before from (
             select seq, octet_length(body) as bytes from ${schema}.log where seq < $1::bigint order by seq limit $2::int
           ) as oldest
         ) as sized where before < $3::bigint
       ) returning seq`,
    ),
    versions: named(
      "versions",
      `select hash, served_at, served_by, functions, bytes, until_seq from ${schema}.versions where served_at is not null
       order by served_at desc`,
    ),
    versionBytes: named("version_bytes", `select bytes, pieces from ${schema}.versions where hash = $1`),
    versionsBytes: named("versions_bytes", `select coalesce(sum(bytes), 0) as bytes from ${schema}.versions`),
    keepVersion: named(
      "keep_version",
      `update ${schema}.versions v set until_seq = null where hash = $1 and
         pieces = (select count(*) from ${schema}.version_pieces p where p.hash = v.hash) returning hash`,
    ),
    /** Removes an incomplete version. */
    dropVersion: named(
      "drop_version",
      `delete from ${schema}.versions v where hash = $1 and
         pieces <> (select count(*) from ${schema}.version_pieces p where p.hash = v.hash)`,
    ),
    addPiece: named(
      "add_piece",
      `insert into ${schema}.version_pieces (hash, piece, body) values ($1, $2::int, $3::bytea)`,
    ),
    readPiece: named(
      "read_piece",
      `select body from ${schema}.version_pieces where hash = $1 and piece = $2::int`,
    ),
    /** Also removes pieces of a concurrent upload, which then fails as incomplete. */
    removePieces: named(
      "remove_pieces",
      `delete from ${schema}.version_pieces p where
         not exists (select from ${schema}.versions v where v.hash = p.hash)`,
    ),
    /** Renames the pieces of a complete upload, unless another server was faster. */
    addVersion: named(
      "add_version",
      `with added as (
         insert into ${schema}.versions (hash, bytes, pieces) select $1, $2::bigint, $3::int
         where (select count(*) from ${schema}.version_pieces where hash = $4) = $3::int
         on conflict (hash) do nothing returning hash)
       , named as (update ${schema}.version_pieces p set hash = added.hash from added where p.hash = $4)
       select hash from added`,
    ),
    /** Marks the versions that rows after $2 do not need, because another version is named. */
    replaceVersions: named(
      "replace_versions",
      `update ${schema}.versions set until_seq = $2::bigint where hash <> $1 and until_seq is null`,
    ),
    serveVersion: named(
      "serve_version",
      `update ${schema}.versions set served_at = $2::bigint, served_by = $3, functions = $4, until_seq = null where hash = $1`,
    ),
    /** Removes versions that no row of the log needs, except the newest deploys and the named version $2. */
    trimVersions: named(
      "trim_versions",
      `delete from ${schema}.versions where until_seq <= (select min(seq) from ${schema}.log) and hash <> $2 and
         hash not in (select hash from ${schema}.versions where served_at is not null order by served_at desc limit $1::int)`,
    ),
    note: named(
      "note",
      `insert into ${schema}.members (holder, address, role, ts, seq, sockets, lag_ms, seen_at)
       values ($1, $2, $3, $4::bigint, $5::bigint, $6::int, $7::double precision, now())
       on conflict (holder) do update set address = excluded.address, role = excluded.role, ts = excluded.ts,
         seq = excluded.seq, sockets = excluded.sockets, lag_ms = excluded.lag_ms, seen_at = excluded.seen_at`,
    ),
    forget: named(
      "forget",
      `delete from ${schema}.members where holder = $1 or
         seen_at < now() - $2::double precision * interval '1 millisecond'`,
    ),
    members: named(
      "members",
      `select holder, address, role, ts, seq, sockets, lag_ms,
         (extract(epoch from now() - seen_at) * 1000)::double precision as seen_ms
       from ${schema}.members where seen_at > now() - $1::double precision * interval '1 millisecond' order by address, holder`,
    ),
  } as const;
}
