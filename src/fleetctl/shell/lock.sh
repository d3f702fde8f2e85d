# shellcheck shell=sh disable=SC2154,SC2034
# Whether a run is changing this machine: the lock is a symbolic link whose target is
# boot:pid:start:nonce:owner.

# When process $1 began, in words that differ for another process with the same number.
started() {
  if [ -r /proc/self/stat ]; then
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # the name, in parentheses, may contain anything; field 22 of all is field 20 after it
    # shellcheck disable=SC2086
    set -- ${line##*") "}
    printf %s "${20}"
  else
    ps -o lstart= -p "$1" 2>/dev/null | tr -c '[:alnum:]\n' -
  fi
}

boot_id() {
  cat /proc/sys/kernel/random/boot_id 2>/dev/null || sysctl -n kern.bootsessionuuid 2>/dev/null ||
    echo unknown
}

# Whether the holder that a lock names is alive. No clock is involved.
alive() {
  rest=${1#*:}
  [ "${1%%:*}" = "$boot" ] && pid=${rest%%:*} rest=${rest#*:} &&
    [ "$(started "$pid")" = "${rest%%:*}" ]
}

# ask_state SCOPE FOLDER: whether a run is at work there, or one was interrupted.
ask_state() {
  if [ -L "$2/lock" ] && boot=$(boot_id) holder=$(readlink "$2/lock") && alive "$holder"
  then echo "busy ${holder##*:}"
  elif [ -e "$2/journal" ]
  then echo "unfinished $1"
  fi
}
