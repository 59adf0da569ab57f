/** Shell scripts that unpack the server into a cache folder and turn into it. */
import { runtimeEnvironment } from "../kit/processes/runtime_environment.ts";

/** Versions that nobody has started for this long are removed when another is unpacked. */
const KEPT_DAYS = 90;
/** Unpacking takes seconds: what is older than this was left behind by one that was killed. */
const UNPACKING_MINUTES_MAX = 60;
/** The name of the folder in the cache that the packages lie in: that of the registry they are said to be from. */
export const registryFolder = "packages.invalid";
/** It is nowhere: nothing is fetched from it. */
const REGISTRY = `https://${registryFolder}/`;
/** Room for the numbers in the single file's script, which say how long it is. */
const LENGTH_DIGITS = 12;

export interface PayloadName {
  /** Names the contents of the archive; hexadecimal. */
  readonly id: string;
  readonly version: string;
}

/** The head of the single file: unpacks what follows it, and turns into the server, so that signals reach it. */
export function singleFileHead(name: PayloadName): string {
  // The script names its own length, in a number of fixed width.
  const ofLength = (length: number) => {
    const from = String(length + 1);
    const script = `#!/bin/sh\n${unpack(name, `tail -c +${from} "$0"`)}${START}`;
    return `${script}${"#".repeat(LENGTH_DIGITS - from.length)}\n`;
  };
  const { length } = ofLength(0);
  return ofLength(length);
}

/** The same in two scripts, for a program that holds the archive itself. */
export function launcherScripts(name: PayloadName): { readonly unpack: string; readonly start: string } {
  return {
    /** Takes the archive from its input, as far as it needs it, and prints the folder. */
    unpack: `${unpack(name, "cat")}printf %s "$home"\n`,
    /** The folder is the first argument, those of the server follow. */
    start: `home="$1"\nshift\n${START}`,
  };
}

/**
 * Unpacks what the command `archive` prints into a folder named for it, unless it is there; `home` is that folder then.
 * Unpacking ends in a rename, whoever was killed and however many began at once. Names and sizes of all files are
 * compared with those at that moment, because cleaners of caches remove files one by one; contents are not, which would
 * read all of them at each start.
 */
function unpack({ id, version }: PayloadName, archive: string): string {
  return `# Syncline ${version}. Unpacks itself into a cache folder the first time; SYNCLINE_CACHE_DIR says where.
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
  [ -x "$home/deno" ] && [ -f "$home/complete" ] && [ "$(contents "$home" 2>/dev/null)" = "$(cat "$home/complete")" ]
}
[ -n "$cache" ] || fail "there is no HOME to keep the unpacked program in: set SYNCLINE_CACHE_DIR to a folder"
cache="$cache/syncline"
home="$cache/${id}"
found=""
[ ! -e "$home" ] || found=yes
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
  # Before unpacking, which takes long: none of several starts moves away what another has just put in its place.
  [ -z "$found" ] || mv "$home" "$part/damaged" 2>/dev/null || :
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
[ -O "$home" ] || fail "$home belongs to somebody else: set SYNCLINE_CACHE_DIR to a folder of your own"
# When it was started last. A cache that cannot be written to is as good.
touch "$home/complete" 2>/dev/null || :
`;
}

const SETTINGS = Object.entries(runtimeEnvironment).map(([name, value]) => `${name}=${value}`).join(" ");

const START =
  `export DENO_DIR="$home/cache" DENO_NO_UPDATE_CHECK=1 NPM_CONFIG_REGISTRY=${REGISTRY} ${SETTINGS}
exec "$home/deno" run --quiet --no-prompt --no-remote --cached-only --frozen --config "$home/app/deno.json" -P=serve \\
  "$home/app/cli.ts" "$@"
`;
