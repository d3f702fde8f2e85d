# shellcheck shell=sh disable=SC2154
# Ollama.app: needs launchd.sh.

# Where the app is, and the settings that the user made in it.
ask_app() {
  for app in /Applications/Ollama.app "$HOME/Applications/Ollama.app"; do
    [ ! -d "$app" ] || printf '%s\n' "$app"
  done
  settings="$HOME/Library/Application Support/Ollama/db.sqlite"
  [ ! -f "$settings" ] || {
    section settings
    sqlite3 -readonly "$settings" 'select expose, browser, models, context_length from settings'
  }
}

app_is_gone() { ! pgrep -x Ollama >/dev/null; }

quit_app() {
  ! app_is_gone || return 0
  pkill -TERM -x Ollama
  within 40 app_is_gone || { echo "Ollama.app does not quit"; return 1; }
}

open_app() { open -j -a Ollama --args hidden --fast-startup; }

# restart_app LABEL PLIST: in the session at the screen that job gives the app its variables. The app
# must be gone before, or the job would open it a second time. Without the file they are unset.
restart_app() {
  find_domain
  quit_app && unload_job "$1" || return
  job=$2
  [ -e "$job" ] || make_unsetting_job "$1"
  if [ -e "$job" ]; then
    load_job "$1" "$job" || return
    within 10 has_run "$1"
  fi
  [ "$job" = "$2" ] || { unload_job "$1"; rm -f "$job" "$names"; }
  open_app
}

make_unsetting_job() {
  names=$home/.config/fleetctl/ollama-app.names
  [ -e "$names" ] || return 0
  job=$state/unset.plist
  {
    echo '<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>'
    echo "<key>Label</key><string>$1</string><key>RunAtLoad</key><true/>"
    echo '<key>ProgramArguments</key><array><string>/bin/sh</string><string>-c</string><string>'
    while read -r line; do
      for name in $line; do echo "launchctl unsetenv $name;"; done
    done <"$names"
    echo '</string></array></dict></plist>'
  } >"$job"
}

# The app as it is started at login.
displace_app() {
  find_domain
  launchctl disable "$domain/com.ollama.ollama"
  quit_app
}

give_back_app() {
  find_domain
  launchctl enable "$domain/com.ollama.ollama"
  open_app
}
