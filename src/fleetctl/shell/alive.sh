# shellcheck shell=sh disable=SC2154,SC2034
# Whether a run is at work on this node: whoever holds a lock is named by the target of its link, as
# boot:pid:start:nonce:owner. Only functions.

# When process $1 began, in words that differ for another process with the same number.
started() {
  if [ -r /proc/self/stat ]; then
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # the name, in parentheses, may hold anything; the 22nd field of all is the 20th after it
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

# Whether the holder that a lock names is alive. No clock is asked, so none can be wrong.
alive() {
  rest=${1#*:}
  [ "${1%%:*}" = "$boot" ] && pid=${rest%%:*} rest=${rest#*:} &&
    [ "$(started "$pid")" = "${rest%%:*}" ]
}
