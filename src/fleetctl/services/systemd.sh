# shellcheck shell=sh disable=SC2086
# A unit of systemd: what is asked about it, and how it is controlled.

user_runtime() {
  [ -n "${XDG_RUNTIME_DIR-}" ] || { XDG_RUNTIME_DIR=/run/user/$(id -u); export XDG_RUNTIME_DIR; }
}

# ask_unit SCOPE UNIT LIMIT MARKS FILE...: its properties, the files that describe it and the FILEs,
# the environment of its process, and the lines of its journal since its start that contain a MARK.
# As few processes as possible: starting programs is most of the time of a check.
ask_unit() {
  scope=$1 unit=$2 limit=$3 marks=$4
  shift 4
  [ -d /run/systemd/system ] || [ -n "${XDG_RUNTIME_DIR-}" ] || return 1
  user_runtime
  properties=$(systemctl "--$scope" show "$unit" -p LoadState,ActiveState,UnitFileState,FragmentPath \
    -p DropInPaths,EnvironmentFiles,MainPID,InvocationID,NRestarts,NeedDaemonReload) || return
  printf '%s\n' "$properties"
  pid=0 run=
  set -f
  while IFS= read -r line; do
    value=${line#*=}
    case $line in
      (FragmentPath=*) set -- "$@" "$value";;
      (DropInPaths=*) set -- "$@" $value;;
      (EnvironmentFiles=*) set -- "$@" "${value%%" (ignore_errors="*}";;
      (MainPID=*) pid=$value;;
      (InvocationID=*) run=$value;;
    esac
  done <<END
$properties
END
  for file do
    shift
    case " $* " in (*" $file "*) ;; (*) set -- "$@" "$file";; esac
  done
  set +f
  read_files root "$limit" "$@"
  [ "${pid:-0}" -gt 0 ] || return 0
  # the environment of a process and the journal may be readable by root only
  section environ
  cat "/proc/$pid/environ" 2>/dev/null || as_root cat "/proc/$pid/environ"
  section log
  journal_of journalctl "--$scope" || { as_root true && journal_of sudo -n journalctl; }
  return 0
}

# The first lines after a start are enough.
journal_of() {
  lines=$("$@" --quiet --no-pager --output=cat "_SYSTEMD_INVOCATION_ID=$run" 2>/dev/null |
    head -n 400 | grep -F "$marks")
  [ -n "$lines" ] && printf '%s\n' "$lines"
}

# Without `reset-failed` a unit that crashed too often would not be started.
restart_unit() {
  systemctl "--$1" reset-failed "$2" 2>/dev/null
  systemctl "--$1" restart "$2"
}

# verify_unit SCOPE UNIT FILE: fails if systemd complains about that file of the unit.
verify_unit() {
  command -v systemd-analyze >/dev/null || return 0
  ! systemd-analyze "--$1" verify "$2" 2>&1 | grep -F "$3"
}

# Where the journal is not kept over a boot, users may not read the log of their own units.
unit_log() {
  words=$(last_lines journalctl "--$1" "--unit=$2")
  [ -n "$words" ] ||
    words=$(last_lines sudo -n journalctl "_SYSTEMD_USER_UNIT=$2" "_UID=$(id -u)")
  printf '%s\n' "$words"
}

last_lines() { "$@" --lines=200 --quiet --no-pager --output=cat 2>/dev/null; }
