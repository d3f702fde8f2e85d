# shellcheck shell=sh disable=SC2016
# What every script begins with. A Mac's SSH session has only the system's folders in its PATH; what
# is there is extended, never replaced.

LC_ALL=C; export LC_ALL
PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/sbin:/sbin:/opt/homebrew/bin; export PATH
umask 077

# Runs a command as root where sudo needs no password: for what only root may read.
as_root() { [ "$(id -u)" != 0 ] && command -v sudo >/dev/null && sudo -n "$@" 2>/dev/null; }

# Whether an absolute path would be found: a folder that may not be searched hides its files.
can_search() {
  folder=${1%/*}
  while [ ! -d "$folder/" ] && [ "$folder" != "${folder%/*}" ]; do folder=${folder%/*}; done
  [ -x "$folder/" ] || [ ! -d "$folder/" ]
}

# read_files user|root LIMIT FILE...: a section `modes` that lists the files that exist, and a
# section `file PATH` with the first LIMIT bytes of each. Only regular files are read, also by root;
# `unreadable PATH` follows for the others. With `root`, sudo reads what the user may not.
read_files() {
  reader=$1 limit=$2
  shift 2
  for file do
    shift
    if [ -e "$file" ] || [ -L "$file" ]; then
      set -- "$@" "$file"
    elif ! can_search "$file"; then
      if [ "$reader" != root ] || ! as_root true; then section "unreadable $file"
      elif as_root test -e "$file"; then set -- "$@" "$file"; fi
    fi
  done
  [ $# -gt 0 ] || return 0
  section modes
  ls -ldn "$@" 2>/dev/null || { [ "$reader" = root ] && as_root ls -ldn "$@"; }
  for file do
    section "file $file"
    { [ -f "$file" ] && head -c "$limit" "$file"; } 2>/dev/null || {
      [ "$reader" = root ] &&
        as_root /bin/sh -c '[ -f "$1" ] && head -c "$2" "$1"' sh "$file" "$limit"
    } || section "unreadable $file"
  done
}
