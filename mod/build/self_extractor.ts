/** The shell script at the head of the single file. */

/**
 * A script for `sh` that unpacks what follows it into a cache folder named for the contents, once, and turns into the
 * server, so that signals reach it. Unpacking ends in a rename: a folder with this name is whole, whoever was killed and
 * however many began at once. `bytes`: length of the script itself.
 */
export function selfExtractor({ id, version, bytes }: {
  /** Names the contents; hexadecimal. */
  readonly id: string;
  readonly version: string;
  readonly bytes: number;
}): string {
  return `#!/bin/sh
# Syncline ${version}. Unpacks itself into a cache folder the first time; SYNCLINE_CACHE_DIR says where.
set -eu
cache="\${SYNCLINE_CACHE_DIR:-\${CACHE_DIRECTORY:-\${XDG_CACHE_HOME:-\${HOME:+$HOME/.cache}}}}"
if [ -z "$cache" ]; then
  echo "syncline: there is no HOME to keep the unpacked program in: set SYNCLINE_CACHE_DIR to a folder" >&2
  exit 1
fi
cache="$cache/syncline"
home="$cache/${id}"
if [ ! -d "$home" ]; then
  umask 077
  mkdir -p "$cache"
  part="$(mktemp -d "$cache/.part-XXXXXX")"
  trap 'rm -rf "$part"' EXIT
  trap 'exit 1' HUP INT TERM
  mkdir "$part/${id}"
  if ! { tail -c +${
    String(bytes + 1)
  } "$0" | gzip -dc | tar -xf - -C "$part/${id}"; } || [ ! -f "$part/${id}/complete" ]; then
    echo "syncline: cannot unpack into $cache: the disk is full, or $0 is damaged" >&2
    exit 1
  fi
  # Fails when another start was first.
  mv "$part/${id}" "$cache/" 2>/dev/null || [ -d "$home" ]
  rm -rf "$part"
  trap - EXIT HUP INT TERM
fi
# Whoever owns the folder decides what runs.
if [ ! -O "$home" ]; then
  echo "syncline: $home belongs to somebody else: set SYNCLINE_CACHE_DIR to a folder of your own" >&2
  exit 1
fi
export DENO_DIR="$home/cache" DENO_NO_UPDATE_CHECK=1 NPM_CONFIG_REGISTRY=${REGISTRY}
exec "$home/deno" run --quiet --no-prompt --no-remote --cached-only --frozen --config "$home/app/deno.json" -P=serve \\
  "$home/app/cli.ts" "$@"
`;
}

/** The registry whose folder in the cache the packages lie in. Nothing is fetched from it. */
const REGISTRY = "https://registry.npmjs.org/";
/** The name of that folder. */
export const registryFolder = "registry.npmjs.org";
