/** What is kept in the cluster's schema, and every statement that is asked of it: plain SQL of version 13 on. */
import type { Statement } from "./connection.ts";

/** Raised when a server of before could not understand the tables any more. */
export const FORMAT = 2;

/** SQL that makes the tables; run in one transaction with the cluster's row. */
export function createSql(name: string): string {
  const schema = quoted(name);
  return `
    create table ${schema}.cluster (one int primary key check (one = 1), format int not null, id text not null,
      generation text not null, first_seq bigint not null, first_ts bigint not null, first_sum text not null,
      service_key bytea not null, created_at timestamptz not null default now());
    create table ${schema}.lease (one int primary key check (one = 1), epoch bigint not null, holder text not null,
      address text not null, until timestamptz not null);
    create table ${schema}.log (seq bigint primary key, epoch bigint not null, ts_before bigint not null,
      ts bigint not null, at double precision not null, sum text not null, body bytea not null);
    alter table ${schema}.log alter body set storage external;
    create table ${schema}.snapshots (seq bigint primary key, ts bigint not null, sum text not null,
      name text not null, bytes bigint not null, made_at timestamptz not null default now());
    create table ${schema}.members (holder text primary key, address text not null, role text not null,
      ts bigint not null, seq bigint not null, sockets int not null, seen_at timestamptz not null,
      lag_ms double precision);
    ${versionsSql(schema)}`;
}

/** SQL that makes the tables of what was deployed. `served_at` is by the leader's clock; `until_seq`: the row that named another. */
function versionsSql(schema: string): string {
  return `
    create table ${schema}.versions (hash text primary key, bytes bigint not null, pieces int not null, served_at bigint,
      served_by text not null default '', functions text not null default '{}', until_seq bigint,
      made_at timestamptz not null default now());
    create table ${schema}.version_pieces (hash text not null, piece int not null, body bytea not null,
      primary key (hash, piece));
    alter table ${schema}.version_pieces alter body set storage external;`;
}

/** SQL that adds what came later, and what servers of before need not know: they name the columns that they write. */
export function addedSql(name: string): string {
  return `alter table ${quoted(name)}.members add column if not exists lag_ms double precision`;
}

/** SQL that makes a cluster of the format before this one of this one. */
export function updateSql(name: string): string {
  const schema = quoted(name);
  return `${versionsSql(schema)} update ${schema}.cluster set format = ${FORMAT};`;
}

export type Statements = ReturnType<typeof statementsFor>;

/** The channels on which servers tell one another. */
export const channelsOf = (schema: string) => ({ log: `${schema}_log`, lease: `${schema}_lease` }) as const;

/** For SQL: a name may be one of its words. */
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
    /**
     * No row comes back when the epoch is over, or when the row before is another one than is thought. The lock is what
     * keeps a takeover waiting until this is committed or has failed; comparing the epoch alone would not.
     */
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
    /** One row while nobody else leads and the log ends behind the row `$2`. */
    leads: named(
      "leads",
      `select 1 as leads from ${schema}.lease l where l.one = 1 and l.epoch = $1::bigint
         and not exists (select from ${schema}.log where seq > $2::bigint)`,
    ),
    /** That there are new rows. In a statement of its own: its lock, and waking all who listen, hold up no row. */
    tell: named("tell", `notify ${channels.log}`),
    /** A server that leads is told of no rows: they are its own. */
    hear: named("hear", `listen ${channels.log}`),
    unhear: named("unhear", `unlisten ${channels.log}`),
    sumOf: named("sum_of", `select sum from ${schema}.log where seq = $1::bigint`),
    end: named("end", `select seq, ts, sum from ${schema}.log order by seq desc limit 1`),
    /**
     * What follows a row, and the row itself without its text; each with where the log ends. The text comes as such where
     * the database can hold every text: bytes would come as hexadecimal digits.
     */
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
    /** The lock waits for rows that are being added; whoever comes behind it finds another epoch. */
    take: named(
      "take",
      `with ended as (select one from ${schema}.lease where one = 1 and until < now() for update)
       , taken as (update ${schema}.lease l set holder = $1, address = $2, epoch = epoch + 1,
         until = clock_timestamp() + $3::double precision * interval '1 millisecond'
       from ended where l.one = ended.one returning epoch)
       select epoch, pg_notify('${channels.lease}', '') from taken`,
    ),
    /** As long as nobody has taken it the lease is the holder's, however late. With it come who else was heard of lately. */
    renew: named(
      "renew",
      `update ${schema}.lease set until = clock_timestamp() + $3::double precision * interval '1 millisecond'
       where one = 1 and epoch = $1::bigint and holder = $2
       returning epoch, (select count(*) from ${schema}.members m where m.holder <> $2 and
         m.seen_at > now() - $4::double precision * interval '1 millisecond') as others`,
    ),
    release: named(
      "release",
      // Without a holder: a renewal that is still on its way does not bring it back. Its disk is not waited for: who takes the
      // lease waits for that, and after a power failure before it this one ends by itself.
      `with given as (update ${schema}.lease set until = '-infinity', holder = '' where one = 1 and epoch = $1::bigint and holder = $2
         returning epoch)
       select pg_notify('${channels.lease}', ''), set_config('synchronous_commit', 'off', true) from given`,
    ),
    lease: named(
      "lease",
      `select epoch, holder, address, until > '-infinity' as held, case when until > '-infinity'
         then (extract(epoch from until - now()) * 1000)::double precision else -1 end as left_ms
       from ${schema}.lease where one = 1`,
    ),
    /** No value: it has no such setting. */
    fsync: named("fsync", `select current_setting('fsync', true) as fsync`),
    snapshots: named(
      "snapshots",
      `select seq, ts, sum, name, bytes, (extract(epoch from now() - made_at) * 1000)::double precision as age_ms
       from ${schema}.snapshots order by seq desc`,
    ),
    /** The oldest first, each with when its newest commit was made, by its leader's clock as in all rows. */
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
    /** The newest row stays: the next one is chained to it. At most $2 rows, of which all but the last have $3 bytes together. */
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
    /** Of a version that is there whole: it is about to be named. */
    keepVersion: named(
      "keep_version",
      `update ${schema}.versions v set until_seq = null where hash = $1 and
         pieces = (select count(*) from ${schema}.version_pieces p where p.hash = v.hash) returning hash`,
    ),
    /** One of which pieces are gone. */
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
    /** Also those that somebody is just putting there: that one finds that they are not complete. */
    removePieces: named(
      "remove_pieces",
      `delete from ${schema}.version_pieces p where
         not exists (select from ${schema}.versions v where v.hash = p.hash)`,
    ),
    /** Of pieces that were put there under a name of their own, when all of them are there, and nobody was quicker. */
    addVersion: named(
      "add_version",
      `with added as (
         insert into ${schema}.versions (hash, bytes, pieces) select $1, $2::bigint, $3::int
         where (select count(*) from ${schema}.version_pieces where hash = $4) = $3::int
         on conflict (hash) do nothing returning hash)
       , named as (update ${schema}.version_pieces p set hash = added.hash from added where p.hash = $4)
       select hash from added`,
    ),
    /** Where another version is the one that is named, none of these is needed behind the end of the log. */
    replaceVersions: named(
      "replace_versions",
      `update ${schema}.versions set until_seq = $2::bigint where hash <> $1 and until_seq is null`,
    ),
    serveVersion: named(
      "serve_version",
      `update ${schema}.versions set served_at = $2::bigint, served_by = $3, functions = $4, until_seq = null where hash = $1`,
    ),
    /** What no server needs that begins with the oldest row; but not what was deployed last, nor the one that is named, $2. */
    trimVersions: named(
      "trim_versions",
      `delete from ${schema}.versions where until_seq <= (select min(seq) from ${schema}.log) and hash <> $2 and
         hash not in (select hash from ${schema}.versions where served_at is not null order by served_at desc limit $1::int)`,
    ),
    /** Rows behind one that have $2 near their beginning, which few have, and $3 somewhere. */
    rowBehind: named(
      "row_behind",
      // In this order: the whole of a row is looked at only where its beginning says so.
      `select 1 from ${schema}.log where seq > $1::bigint and
         case when position($2::bytea in substring(body from 1 for 256)) > 0
           then position($3::bytea in body) > 0 else false end limit 1`,
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
    /** No row: the table is of before there was that column. */
    hasLag: named(
      "has_lag",
      `select 1 from information_schema.columns
       where table_schema = $1 and table_name = 'members' and column_name = 'lag_ms'`,
    ),
    members: named(
      "members",
      `select holder, address, role, ts, seq, sockets, lag_ms,
         (extract(epoch from now() - seen_at) * 1000)::double precision as seen_ms
       from ${schema}.members where seen_at > now() - $1::double precision * interval '1 millisecond' order by address, holder`,
    ),
  } as const;
}
