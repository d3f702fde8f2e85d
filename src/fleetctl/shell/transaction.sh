# shellcheck shell=sh disable=SC2154,SC2034,SC2317,SC2012
# A transaction on a node: committed as a whole, or rolled back. Only functions; shell/transaction.py
# puts the values of one transaction before them and calls `session`.
#
# Under $state (/var/lib/fleetctl, or a folder of the user):
#   lock       a symbolic link whose target names its holder; made and read in one system call
#   journal/   exists while a transaction is unfinished: a folder for each file, with its old content
#   backups/N  the journals of committed transactions, for `restore`
#   origin/    each file before fleetctl first changed it, for `remove`
#   made       folders that fleetctl created
#   log        a line for each transaction
#
# Standard input is fd 3, since programs started here must not read it. All output is lines that
# begin with the nonce. The controller may be gone, so failing to print is ignored.

say() { printf '@@%s %s\n' "$nonce" "$*" 2>/dev/null || :; }

# Lines of a program, truncated.
quoted() { cut -c 1-300 | sed "s/^/@@$nonce | /" 2>/dev/null || :; }

# A step is a point at which a run may be interrupted; the lock must still be ours then. Without it
# another run may be at work, so nothing more is touched, not even for a rollback.
step() {
  say step "$@"
  [ "$(readlink "$state/lock")" = "$mine" ] || { say preempted "$(readlink "$state/lock")"; exit 1; }
}

# --- the lock ---

nonce_of() {
  rest=${1#*:*:*:}
  printf %s "${rest%%:*}"
}

# The lock of a dead holder is removed by the run that claims that holder's nonce first, and only if
# the lock is still that one; the claim of a run that died is taken over in the same way.
take_lock() {
  boot=$(boot_id)
  mine=$boot:$$:$(started $$):$nonce:$owner
  holder=
  for _ in 1 2 3 4 5; do
    ! try ln -s "$mine" "$state/lock" || return 0
    holder=$(readlink "$state/lock") || continue
    dead=$holder chain=
    while ! alive "$dead"; do
      claim=$state/lock.after-$(nonce_of "$dead")
      chain="$chain $claim"
      if ln -s "$mine" "$claim" 2>/dev/null; then
        [ "$(readlink "$state/lock")" != "$holder" ] || rm -f "$state/lock"
        # shellcheck disable=SC2086
        rm -f $chain
        continue 2
      fi
      dead=$(readlink "$claim") || continue 2
    done
    holder=$dead
    return 1
  done
  return 2
}

# Leftovers of an interrupted run. A claim matters only until the lock is taken.
clear_away() {
  rm -rf "$state/journal.new" "$state/journal.done" "$state/origin.new" "$state"/lock.after-* \
    "$state/output" "$state/late" "$state/beat"
}

release() {
  rm -f "$state/beat"
  [ "$(readlink "$state/lock")" != "$mine" ] || rm -f "$state/lock"
}

# --- folders and files ---

checksum() { cksum <"$1" 2>/dev/null; }

# Mode, owner, group and size.
looks() {
  # shellcheck disable=SC2046
  set -- $(ls -ldn "$1" 2>/dev/null)
  printf %s "$1 $3 $4 $5"
}

same() { [ "$(looks "$1")" = "$(looks "$2")" ] && [ "$(checksum "$1")" = "$(checksum "$2")" ]; }

missing_folders() {
  each=$1
  while [ -n "$each" ] && [ ! -d "$each" ]; do
    printf '%s\n' "$each"
    each=${each%/*}
  done
}

# Removes those of a list of folders that are empty, the deepest first.
remove_folders() {
  printf '%s\n' "$1" | sort -r | while IFS= read -r each; do rmdir "$each" 2>/dev/null; done
}

# No other user may be able to replace what is in the folder, or a folder or link on its path.
sound_folder() {
  each=$1 me=$(id -u)
  sound_place "$each/." || return
  while [ -n "$each" ]; do
    sound_place "$each" || return
    each=${each%/*}
  done
}

# Folders of a network file system, or from outside a container, belong to the user `nobody`.
sound_place() {
  # shellcheck disable=SC2046
  set -- "$1" $(ls -ldn "$1" 2>/dev/null)
  case $2 in
    ('') why="$1 may not be read"; return 1;;
    (l*) ;;
    (????????w[!tT]*) why="${1%/.} is writable by every user"; return 1;;
  esac
  case $4 in
    (0|"$me") ;;
    (65534|4294967294) [ "$me" != 0 ] || { why="${1%/.} belongs to nobody"; return 1; };;
    (*) why="${1%/.} belongs to user $4"; return 1;;
  esac
}

sound_file() {
  [ ! -L "$1" ] || { why="$1 is a symbolic link"; return 1; }
  [ -e "$1" ] || return 0
  [ -f "$1" ] || { why="$1 is not a regular file"; return 1; }
  # shellcheck disable=SC2046
  set -- "$1" $(ls -ldn "$1")
  [ "$3" = 1 ] || { why="$1 has a second name (a hard link)"; return 1; }
}

flush() { sync "$@" 2>/dev/null || sync; }

# Sets the values of file $1: path, mode, entry (its name in the journal), is and will (absent or not).
file() {
  eval "path=\$path_$1 mode=\$mode_$1 entry=\$entry_$1 is=\$is_$1 will=\$will_$1"
  place=${path%/*}
  temporary=$place/.${path##*/}.fleetctl
}

# Why something failed: in our words, and what the command printed.
blank() { why='' said=''; }

# Runs a command and keeps what it prints.
try() { said=$("$@" 2>&1); }

# Runs a command for at most $1 seconds.
bounded() {
  limit=$1
  shift
  "$@" >"$state/output" 2>&1 & job=$!
  (
    while [ "$limit" -gt 0 ] && kill -0 $job; do sleep 1; limit=$((limit - 1)); done
    kill $job && true >"$state/late"
  ) >/dev/null 2>&1 & dog=$!
  wait $job
  code=$?
  kill $dog 2>/dev/null
  said=$(tail -n 20 "$state/output")
  [ ! -e "$state/late" ] || why="it took too long"
  rm -f "$state/output" "$state/late"
  return $code
}

# --- the transaction ---

unchanged() {
  file "$1"
  sound_file "$path" || return
  why="$path has changed since the plan"
  if [ "$is" = absent ]; then
    [ ! -e "$path" ]
  else
    [ "$("old_$1" | cksum)" = "$(checksum "$path")" ]
  fi
}

begin() {
  journal=$state/journal.new
  try rm -rf "$journal" && try mkdir "$journal" || return
  printf '%s\n' "$about" >"$journal/about" || return
  for number in $files; do
    file "$number"
    try mkdir "$journal/$entry" && printf '%s\n' "$path" >"$journal/$entry/path" || return
    [ "$is" = absent ] || { try cp -p "$path" "$journal/$entry/old" &&
      why="$path could not be copied" && same "$path" "$journal/$entry/old"; } || return
  done
  [ "$active" = yes ] || true >"$journal/inactive" || return
  flush "$journal"
  try mv "$journal" "$state/journal" || return
  journal=$state/journal
}

# Writes a new file beside the old one, with its final mode at most, and reads it back.
stage() {
  file "$1"
  [ "$will" != absent ] || return 0
  missing_folders "$place" >>"$journal/made" || return
  try mkdir -p "${place:-/}" && sound_folder "$place" || return
  try rm -f "$temporary" || return
  try "into" "$temporary" "$1" && keep_owner && try chmod "$mode" "$temporary" || return
  why="$temporary was not written whole"
  [ "$("new_$1" | cksum)" = "$(checksum "$temporary")" ] || return
  why=
  try sync "$temporary"
}

# Keeps the owner of a file; only root can.
keep_owner() {
  [ "$(id -u)" = 0 ] && [ -e "$path" ] || return 0
  # shellcheck disable=SC2046
  set -- $(ls -ldn "$path")
  try chown "$3:$4" "$temporary"
}

# `cat` prints a precise error about the disk; a shell may print only "I/O error".
into() { (umask 077 && "new_$2" | cat >"$1"); }

replace() {
  file "$1"
  sound_file "$path" && try mv -f "$temporary" "$path" && try flush "$path" "$place/."
}

discard() {
  file "$1"
  sound_file "$path" && try rm -f "$path" && try flush "$place/."
}

verify() { try service_verify; }

# A reload that failed is not repeated by the rollback, where it would fail in the same way.
reload() {
  true >"$journal/reloaded" && { try service_reload || { rm -f "$journal/reloaded"; return 1; }; }
}

enable() {
  true >"$journal/enabled" && try service_enable
}

disable() {
  true >"$journal/disabled" && try service_disable
}

restart() {
  true >"$journal/restarting" && bounded "$restart_seconds" service_restart
}

# Stops what else runs the server.
displace() {
  printf '%s\n' "$rival" >"$journal/displaced" && bounded "$restart_seconds" service_displace
}

# When the service is removed, what it had displaced runs the server again.
hand_back() {
  true >"$journal/handed" && bounded "$restart_seconds" service_give_back
}

# For a service that fleetctl created and now removes.
halt() {
  true >"$journal/halted" && bounded "$restart_seconds" service_stop
}

# Done after everything else.
forget() { forgetting=yes; }

run() { bounded "$command_seconds" "command_$1"; }

# One change, by its number in the plan; `-` for steps that are not in the plan.
perform() {
  number=$1
  shift
  step "$@"
  blank
  "$@" || {
    why=${why:-"$1 failed"}
    failed "$number"
    return 1
  }
  [ "$number" = - ] || say did "$number"
}

failed() {
  say failed "$1" "$why"
  printf '%s\n' "$said" | tail -n 20 | quoted
}

commit() {
  [ -d "$state/origin" ] || begin_origin || return
  for number in $files; do
    file "$number"
    [ ! -d "$state/origin/$entry" ] || continue
    try rm -rf "$state/origin.new" && try cp -Rp "$journal/$entry" "$state/origin.new" &&
      try mv "$state/origin.new" "$state/origin/$entry" || return
  done
  [ ! -e "$journal/displaced" ] || [ -e "$state/origin/displaced" ] ||
    try cp "$journal/displaced" "$state/origin/displaced" || return
  [ ! -e "$journal/made" ] || cat "$journal/made" >>"$state/made" || return
  [ -d "$state/backups" ] || try mkdir "$state/backups" || return
  number=$(($(ls "$state/backups" | sort -n | tail -n 1) + 1))
  step commit
  try mv "$journal" "$state/backups/$number" || return
  flush "$state/backups"
  record "$number" applied "$about"
  say committed "$number"
  for old in $(ls "$state/backups" | sort -rn | sed 1,20d); do rm -rf "$state/backups/$old"; done
}

# How the service was before fleetctl first changed it.
begin_origin() {
  try rm -rf "$state/origin.new" && try mkdir "$state/origin.new" || return
  [ "$enabled" = yes ] || true >"$state/origin.new/disabled" || return
  [ ! -e "$journal/inactive" ] || true >"$state/origin.new/stopped" || return
  try mv "$state/origin.new" "$state/origin"
}

# A line of the log: a number, the outcome, and what it was about.
record() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$owner" "$2" "$3" \
    >>"$state/log" 2>/dev/null || :
}

# --- rollback ---

put_back() {
  IFS= read -r path <"$1/path" || return
  temporary=${path%/*}/.${path##*/}.fleetctl
  [ ! -e "$temporary" ] || rm -f "$temporary" || return
  if [ ! -e "$1/old" ]; then
    [ ! -f "$path" ] || rm -f "$path"
  elif ! same "$1/old" "$path"; then
    cp -p "$1/old" "$temporary" && mv -f "$temporary" "$path"
  fi
}

put_all_back() {
  for each in "$journal"/*/; do
    [ ! -e "$each/path" ] || try put_back "$each" || return
  done
  [ ! -e "$journal/made" ] || remove_folders "$(cat "$journal/made")"
  [ ! -e "$journal/enabled" ] || try service_disable || return
  [ ! -e "$journal/disabled" ] || try service_enable || return
  [ ! -e "$journal/reloaded" ] || try service_reload || return
}

serve_as_before() {
  [ ! -e "$journal/handed" ] || bounded "$restart_seconds" service_displace || return
  [ -e "$journal/restarting" ] || [ -e "$journal/halted" ] || return 0
  if [ -e "$journal/inactive" ]; then
    bounded "$restart_seconds" service_stop
  else
    bounded "$restart_seconds" service_restart
  fi
}

# What was displaced runs the server again, once our service has stopped.
give_back() {
  [ -e "$journal/displaced" ] || return 0
  bounded "$restart_seconds" service_stop
  bounded "$restart_seconds" service_give_back
}

forget_journal() {
  rm -rf "$state/journal.done"
  try mv "$journal" "$state/journal.done" && rm -rf "$state/journal.done"
}

# Old bytes back, what was absent absent again, and the service on what it ran with. $1: for the log.
go_back() {
  journal=$state/journal
  begun=$(cat "$journal/about")
  blank
  if put_all_back && serve_as_before && give_back && forget_journal; then
    record - "$1" "$begun"
  else
    left_dirty
    return 1
  fi
}

undo() {
  step undo
  ! go_back "rolled back" || say undone
}

# Undoes an interrupted transaction.
recover() {
  step recover
  ! go_back "undone later" || say recovered
}

# The rollback failed: prints why, and the commands to run by hand.
left_dirty() {
  say dirty
  {
    printf '%s\n' "$said"
    for each in "$journal"/*/; do
      IFS= read -r path <"$each/path" || continue
      if [ -e "$each/old" ]; then echo "\$ cp -p ${each}old $path"; else echo "\$ rm -f $path"; fi
    done
    printf '%s\n' "$manual" "\$ mv $journal $journal.done"
  } | quoted
}

# What explains an unhealthy service: its log, and what else has its port. Lines that every start
# prints and the stack traces of Go are left out.
evidence() {
  words=$(service_log | grep -v -e 'msg="server config"' -e '^\[GIN' -e '^goroutine ' \
    -e '^created by ' -e '^[[:space:]]' -e '^[^ ]*(.*)$' | tail -n 40)
  printf '%s\n' "$words"
  case $words in
    (*"address already in use"*)
      ss -Hltnp "sport = :$port" 2>/dev/null || lsof -nP "-iTCP:$port" -sTCP:LISTEN 2>/dev/null;;
  esac
}

# Only the journal and temporary files have been written so far.
abort() {
  failed -
  rm -rf "$state/journal.new"
  if [ "$journal" = "$state/journal.new" ] || { put_all_back && forget_journal; }; then
    say untouched
  else
    left_dirty
  fi
  return 1
}

transaction() {
  step compare
  for number in $files; do
    blank
    unchanged "$number" || { say changed "$why"; return 1; }
  done
  step journal
  blank
  begin || { abort; return 1; }
  step stage
  for number in $files; do
    blank
    stage "$number" || { abort; return 1; }
  done
  if ! operate; then
    [ ! -e "$journal/restarting" ] || evidence | quoted
    undo
    return 1
  fi
  if [ -e "$journal/restarting" ]; then
    verdict restarted "$verdict_seconds"
    [ $? = 10 ] || { evidence | quoted; undo; return 1; }
  fi
  blank
  commit || { failed -; undo; return 1; }
}

# --- waiting for the controller ---

# Its last word as a status: 10 is commit, 11 anything else, 9 the end of input; above 128 it was
# silent for too long, or took longer than $2 seconds (0: no limit).
# A signal does not interrupt `read` in every shell, but killing a reader ends `wait` in all of them.
verdict() {
  true >"$state/beat"
  say "$1"
  (
    while read -r word <&3; do
      case $word in
        (beat) printf . >>"$state/beat";;
        (commit) exit 10;;
        (*) exit 11;;
      esac
    done
    exit 9
  ) & reader=$!
  (
    silent=0 all=0 heard=
    while sleep 1 && kill -0 $$; do
      all=$((all + 1)) silent=$((silent + 1)) now=$(cat "$state/beat")
      [ "$now" = "$heard" ] || silent=0 heard=$now
      [ "$silent" -lt "$silent_seconds" ] || break
      [ "$2" = 0 ] || [ "$all" -lt "$2" ] || break
    done
    kill $reader
  ) >/dev/null 2>&1 & dog=$!
  wait $reader
  code=$?
  kill $dog 2>/dev/null
  return $code
}

# --- the session ---

# Removes everything of ours that is not a file of the plan, the lock included.
forget_all() {
  made=$(cat "$state/made" 2>/dev/null)
  rm -rf "$state"
  remove_folders "$made"
}

session() {
  trap '' PIPE HUP
  set +f
  umask 022
  forgetting=''
  blank
  made=$(missing_folders "$state")
  if ! { try mkdir -p "$state" && sound_folder "$state"; }; then
    failed -
    say untouched
    return
  fi
  take_lock
  case $? in
    (1) say locked "$holder"; return;;
    (2) failed -; say untouched; return;;
  esac
  step locked
  clear_away
  [ -z "$made" ] || printf '%s\n' "$made" >>"$state/made"
  if [ -d "$state/journal" ]; then
    recover
  elif [ -n "$operations" ] && transaction && [ -n "$forgetting" ]; then
    forget_all
    say forgotten
    return
  fi
  verdict holding 0
  release
  say released
}
