# shellcheck shell=sh disable=SC2154,SC2009,SC2013,SC2086
# launchd from a shell: what a Mac is asked, and how its jobs are told. Only functions.

# `$1` labels, `$2` files, `$3` logs, each a list of words; a path with a blank is none of them.
look_at_mac() {
  uid=$(id -u)
  ! launchctl print "gui/$uid" >/dev/null 2>&1 || echo gui
  section zone; date +%z
  section disabled; launchctl print-disabled "user/$uid" 2>/dev/null; launchctl print-disabled system
  for domain in system "gui/$uid" "user/$uid"; do
    for label in $1; do
      said=$(launchctl print "$domain/$label" 2>/dev/null) || continue
      section "job $domain/$label"; printf '%s\n' "$said"
    done
  done
  there=
  for file in $2; do [ ! -e "$file" ] || there="$there $file"; done
  [ -z "$there" ] || { section modes; ls -ldn $there; }
  for file in $there; do
    section "file $file"; head -c 65536 "$file" 2>/dev/null || echo @unreadable
  done
  section processes; ps -axo pid=,uid=,lstart=,command= | grep -i '[o]llama'
  for app in /Applications/Ollama.app "$HOME/Applications/Ollama.app"; do
    [ ! -d "$app" ] || { section app; printf '%s\n' "$app"; }
  done
  settings="$HOME/Library/Application Support/Ollama/db.sqlite"
  [ ! -e "$settings" ] || {
    section settings
    sqlite3 -readonly "$settings" 'select expose, browser, models, context_length from settings'
  }
  for prefix in /opt/homebrew /usr/local "$HOME/homebrew"; do
    [ ! -x "$prefix/bin/brew" ] || [ ! -d "$prefix/opt/ollama" ] || {
      section brew; "$prefix/bin/brew" --version; printf '%s\n' "$prefix"
      set -- "$1" "$2" "$3 $prefix/var/log/ollama.log"
    }
  done
  for log in $3; do
    [ -r "$log" ] || continue
    section "log $log"
    tail -c 262144 "$log" | sed -n -e '/msg="server config"/p' -e '/msg="inference compute"/p'
  done
  section sudo
  if [ "$uid" = 0 ] || sudo -n true 2>/dev/null; then echo free; fi
}

# Where a job of ours belongs: the system for root, else the session at the screen if there is one.
find_domain() {
  domain=gui/$(id -u)
  launchctl print "$domain" >/dev/null 2>&1 || domain=user/$(id -u)
  [ "$(id -u)" != 0 ] || domain=system
}

is_known() { launchctl print "$domain/$1" >/dev/null 2>&1; }
is_gone() { ! is_known "$1"; }
is_brought_in() { launchctl bootstrap "$domain" "$2" && is_known "$1"; }
has_run() { launchctl print "$domain/$1" | grep -q '^.last exit code = 0'; }
app_is_gone() { ! pgrep -x Ollama >/dev/null; }

# Tries for so many seconds; the `sleep` of macOS takes fractions.
within() {
  tries=$(($1 * 4))
  shift
  until "$@"; do
    [ $tries -gt 0 ] || return 1
    tries=$((tries - 1))
    sleep 0.25
  done
}

# `bootout` only begins to take a job away, and `bootstrap` fails until it is gone.
take_away() {
  is_known "$1" || return 0
  launchctl bootout "$domain/$1"
  within 15 is_gone "$1" || { echo "$1 does not go away"; return 1; }
}

# `enable` first: launchd remembers for ever what was disabled once.
bring_in() {
  launchctl enable "$domain/$1"
  within 5 is_brought_in "$1" "$2"
}

# A changed definition is taken away and brought in again; `kickstart` would use the one it knows.
restart_job() {
  find_domain
  if [ ! -e "$journal/reloaded" ] && [ -e "$2" ] && is_known "$1"; then
    launchctl kickstart -k "$domain/$1"
    return
  fi
  take_away "$1" || return
  [ -e "$2" ] || return 0
  [ -d "$home/.ollama/logs" ] || {
    mkdir -p "$home/.ollama/logs" && chown -R "$user" "$home/.ollama" || return
  }
  bring_in "$1" "$2" || return
  # a job may be loaded and yet never be started
  launchctl print "$domain/$1" | grep -q '^.pid = ' || launchctl kickstart "$domain/$1"
}

stop_job() {
  find_domain
  take_away "$1"
}

quit_app() {
  ! app_is_gone || return 0
  pkill -TERM -x Ollama
  within 40 app_is_gone || { echo "Ollama.app does not quit"; return 1; }
}

# Inside the session at the screen the job `$1` of file `$2` gives the app its variables. The app is
# gone before, or the job would open it a second time. Without the file, what was set is unset.
restart_app() {
  find_domain
  quit_app && take_away "$1" || return
  job=$2
  [ -e "$job" ] || unsetting_job "$1"
  if [ -e "$job" ]; then
    bring_in "$1" "$job" || return
    within 10 has_run "$1"
  fi
  [ "$job" = "$2" ] || { take_away "$1"; rm -f "$job" "$names"; }
  open -j -a Ollama --args hidden --fast-startup
}

unsetting_job() {
  names=$home/.config/fleetctl/ollama-app.names
  [ -e "$names" ] || return 0
  job=$state/unset.plist
  {
    echo '<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>'
    echo "<key>Label</key><string>$1</string><key>RunAtLoad</key><true/>"
    echo '<key>ProgramArguments</key><array><string>/bin/sh</string><string>-c</string><string>'
    for name in $(cat "$names"); do echo "launchctl unsetenv $name;"; done
    echo '</string></array></dict></plist>'
  } >"$job"
}
