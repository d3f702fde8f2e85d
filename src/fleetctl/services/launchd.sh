# shellcheck shell=sh disable=SC2154,SC2009
# Jobs of launchd: what a Mac is asked, and how its jobs are controlled. docs/macos.md has the sources.

# ask_launchd LABEL...: whether there is a session at the screen, and what is known of these jobs.
ask_launchd() {
  uid=$(id -u)
  ! launchctl print "gui/$uid" >/dev/null 2>&1 || echo gui
  section zone; date +%z
  section disabled; launchctl print-disabled "user/$uid" 2>/dev/null; launchctl print-disabled system
  for domain in system "gui/$uid" "user/$uid"; do
    for label do
      said=$(launchctl print "$domain/$label" 2>/dev/null) || continue
      section "job $domain/$label"; printf '%s\n' "$said"
    done
  done
}

# ask_processes PATTERN: processes whose command line matches, with the time of their start.
ask_processes() { section processes; ps -axo pid=,uid=,lstart=,command= | grep -i "$1"; }

# ask_logs MARKS FILE...: the last lines of these logs that contain one of the MARKS.
ask_logs() {
  marks=$1
  shift
  for log do
    [ -f "$log" ] && [ -r "$log" ] || continue
    section "log $log"
    tail -c 262144 "$log" | grep -F "$marks"
  done
}

# Where a job of ours belongs: the system for root, else the session at the screen if there is one.
find_domain() {
  domain=gui/$(id -u)
  launchctl print "$domain" >/dev/null 2>&1 || domain=user/$(id -u)
  [ "$(id -u)" != 0 ] || domain=system
}

is_known() { launchctl print "$domain/$1" >/dev/null 2>&1; }
is_gone() { ! is_known "$1"; }
is_bootstrapped() { launchctl bootstrap "$domain" "$2" && is_known "$1"; }
has_run() { launchctl print "$domain/$1" | grep -q '^.last exit code = 0'; }

# within SECONDS COMMAND...: retries until it succeeds; the `sleep` of macOS takes fractions.
within() {
  tries=$(($1 * 4))
  shift
  until "$@"; do
    [ $tries -gt 0 ] || return 1
    tries=$((tries - 1))
    sleep 0.25
  done
}

# `bootout` returns before the job is gone, and `bootstrap` fails until it is.
unload_job() {
  is_known "$1" || return 0
  launchctl bootout "$domain/$1"
  within 15 is_gone "$1" || { echo "$1 does not stop"; return 1; }
}

# `enable` first: launchd remembers a disabled job across reboots.
load_job() {
  launchctl enable "$domain/$1"
  within 5 is_bootstrapped "$1" "$2"
}

# restart_job LABEL PLIST LOG: a changed definition is unloaded and loaded again; `kickstart` would
# use the one that launchd has.
restart_job() {
  find_domain
  if [ ! -e "$journal/reloaded" ] && [ -e "$2" ] && is_known "$1"; then
    launchctl kickstart -k "$domain/$1"
    return
  fi
  unload_job "$1" || return
  [ -e "$2" ] || return 0
  make_log_folder "${3%/*}" || return
  load_job "$1" "$2" || return
  # a loaded job is not always started
  launchctl print "$domain/$1" | grep -q '^.pid = ' || launchctl kickstart "$domain/$1"
}

# A daemon that runs as the user must be able to write there.
make_log_folder() {
  [ ! -d "$1" ] || return 0
  new=$(missing_folders "$1")
  mkdir -p "$1" || return
  printf '%s\n' "$new" | while IFS= read -r each; do chown "$user" "$each" || return; done
}

stop_job() {
  find_domain
  unload_job "$1"
}

enable_job() {
  find_domain
  launchctl enable "$domain/$1"
}

disable_job() {
  find_domain
  launchctl disable "$domain/$1"
}

verify_plist() { [ ! -e "$1" ] || plutil -lint "$1"; }
