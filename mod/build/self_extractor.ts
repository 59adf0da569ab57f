/** Shell scripts that unpack the server into a cache folder and exec it. */
import { runtimeEnvironment } from "../kit/processes/program.ts";

/** Versions not started for this long are removed when another one is unpacked. */
const KEPT_DAYS = 90;
/** Temporary folders older than this were left behind by a killed process. */
const UNPACKING_MINUTES_MAX = 60;
export const registryFolder = "packages.invalid";
/** A host that does not exist, so nothing is fetched. */
const REGISTRY = `https://${registryFolder}/`;
/** Width of the length fields in the script of the single file. */
const LENGTH_DIGITS = 12;

export interface PayloadName {
  /** Hash of the archive's contents, hexadecimal. */
  readonly id: string;
  readonly version: string;
}

/** The script at the start of the single file: unpacks the archive behind it and execs the server. */
export function singleFileHead(name: PayloadName): string {
  // The script contains its own length in a fixed-width number.
  const ofLength = (length: number) => {
    const from = String(length + 1);
    const script = `#!/bin/sh\n${unpack(name, `tail -c +${from} "$0"`)}${START}`;
    return `${script}${"#".repeat(LENGTH_DIGITS - from.length)}\n`;
  };
  const { length } = ofLength(0);
  return ofLength(length);
}

/** The same as two scripts, for a program that carries the archive itself. */
export function launcherScripts(name: PayloadName): { readonly unpack: string; readonly start: string } {
  return {
    /** Reads the archive from standard input as far as needed, and prints the folder. */
    unpack: `${unpack(name, "cat")}printf %s "$home"\n`,
    /** The first argument is the folder; the remaining ones are passed to the server. */
    start: `home="$1"\nshift\n${START}`,
  };
}

/**
 * Unpacks the output of the command `archive` into a folder named after its hash, unless the folder exists; sets `home` to
 * it. Ends with an atomic rename, so concurrent and killed starts are safe. Each start compares the names and sizes of all
 * files with those at that moment, because cache cleaners remove single files. Comparing contents would read all files.
 */
function unpack({ id, version }: PayloadName, archive: string): string {
  return `# Syncline ${version}. Unpacks itself into a cache folder at the first start. Set SYNCLINE_CACHE_DIR to choose the folder.
set -eu
cache="\${SYNCLINE_CACHE_DIR:-\${CACHE_DIRECTORY:-\${XDG_CACHE_HOME:-\${HOME:+$HOME/.cache}}}}"
fail() {
  echo "syncline: $1" >&2
  exit 1
}
contents() {
  (export LC_ALL=C
  cd "$1" && find deno app cache/npm -type f -exec ls -ln {} + | tr -s ' ' | cut -d ' ' -f 5,9- | sort | cksum)
}
whole() {
  # Another start can move the folder away between these commands: two empty strings do not match.
  expected="$(cat "$home/complete" 2>/dev/null)" && [ -x "$home/deno" ] && [ -n "$expected" ] &&
    [ "$(contents "$home" 2>/dev/null)" = "$expected" ]
}
[ -n "$cache" ] || fail "HOME is not set: set SYNCLINE_CACHE_DIR to a folder for the unpacked program"
cache="$cache/syncline"
home="$cache/${id}"
inode() {
  ls -di "$home" 2>/dev/null || :
}
found="$(inode)"
if ! whole; then
  mask="$(umask)"
  umask 077
  mkdir -p "$cache"
  find "$cache"/.part-* -prune -mmin +${UNPACKING_MINUTES_MAX} -exec rm -rf {} + 2>/dev/null || :
  for old in "$cache"/*/; do
    [ -n "$(find "$old"complete -mtime +${KEPT_DAYS} 2>/dev/null)" ] || continue
    old="\${old%/}"
    running="$(ps -A -ww -o args= 2>/dev/null)" || break
    case "$running" in *"/\${old##*/}/deno "*) ;; *) rm -rf "$old" || : ;; esac
  done
  part=""
  trap '[ -z "$part" ] || rm -rf "$part"' EXIT
  trap 'exit 1' HUP INT TERM
  part="$(mktemp -d "$cache/.part-XXXXXX")"
  # Before unpacking, which takes long, and only the folder that was found damaged: none of several starts moves away what
  # another has just put in its place.
  [ -z "$found" ] || [ "$(inode)" != "$found" ] || mv "$home" "$part/damaged" 2>/dev/null || :
  mkdir "$part/${id}"
  ${archive} | { gzip -dc && : >"$part/sound"; } | tar -xf - -C "$part/${id}" &&
    [ -f "$part/sound" ] && [ -f "$part/${id}/complete" ] && contents "$part/${id}" >"$part/${id}/complete" ||
    fail "cannot unpack into $cache: the disk is full, or $0 is damaged"
  # The rename fails when another start was first.
  mv "$part/${id}" "$cache/" 2>/dev/null || whole || fail "cannot replace $home, which is damaged"
  rm -rf "$part"
  trap - EXIT HUP INT TERM
  umask "$mask"
fi
# Whoever owns the folder decides what runs.
[ -O "$home" ] || fail "$home belongs to another user: set SYNCLINE_CACHE_DIR to a folder of your own"
# When it was started last. A cache that cannot be written to is as good.
touch "$home/complete" 2>/dev/null || :
`;
}

const SETTINGS = Object.entries(runtimeEnvironment)
  .map(([name, value]) => `${name}="\${${name}:-${value}}"`).join(" ");

const START =
  `export DENO_DIR="$home/cache" DENO_NO_UPDATE_CHECK=1 NPM_CONFIG_REGISTRY=${REGISTRY} ${SETTINGS}
exec "$home/deno" run --quiet --no-prompt --no-remote --cached-only --frozen --config "$home/app/deno.json" -P=serve \\
  "$home/app/cli.ts" "$@"
`;
