# shellcheck shell=sh disable=SC2012
# What fleetctl keeps on a machine, below the folder that transaction.sh describes. The last two
# arguments of each function are a scope and its folder.

# The log, and the numbers of the backups that are left.
ask_log() {
  [ ! -r "$2/log" ] || tail -n 200 "$2/log"
  section backups; ls "$2/backups" 2>/dev/null
}

ask_lock() { readlink "$2/lock" || true; }

remove_lock() { rm -f "$2/lock"; }

# ask_origin LIMIT SCOPE FOLDER: service and files as they were before fleetctl first changed them.
ask_origin() {
  [ -d "$3" ] || return 1
  for word in disabled stopped; do [ ! -e "$3/origin/$word" ] || echo "$word"; done
  [ ! -r "$3/origin/displaced" ] || sed 's/^/displaced /' "$3/origin/displaced"
  ask_entries "$1" "$3"/origin/*/
}

# ask_backups NUMBER LIMIT SCOPE FOLDER: files as they were before that change. Newest first, so that
# the oldest copy of a file is the last.
ask_backups() {
  [ -d "$4" ] || return 1
  first=$1 limit=$2 folder=$4
  set --
  for number in $(ls "$folder/backups" | sort -rn); do
    [ "$number" -lt "$first" ] || set -- "$@" "$folder/backups/$number"/*/
  done
  ask_entries "$limit" "$@"
}

# ask_entries LIMIT ENTRY...: each backup with the path that it is of, and the content of both.
ask_entries() {
  limit=$1
  shift
  for entry do
    shift
    [ -r "${entry}path" ] || continue
    IFS= read -r path <"${entry}path"
    printf 'entry %s\t%s\n' "${entry}old" "$path"
    set -- "$@" "${entry}old" "$path"
  done
  read_files root "$limit" "$@"
}
