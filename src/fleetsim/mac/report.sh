#!/bin/sh
# Run on a real Mac: prints the answers to those questions of docs/macos.md that read-only commands
# can answer. It changes nothing. Each answer is cut after 60 lines.
# shellcheck disable=SC2009
uid=$(id -u)
ask() {
  printf '\n## %s\n$ %s\n' "$1" "$2"
  sh -c "$2" 2>&1 | head -n 60
  printf '(exit %s)\n' "$(sh -c "$2" >/dev/null 2>&1; echo $?)"
}
agents=$HOME/Library/LaunchAgents
ask "macOS release" "sw_vers; uname -a"
ask "user logged in at the screen" "stat -f %Su /dev/console"
ask "session type of this shell" "launchctl managername"
ask "domain gui/$uid" "launchctl print gui/$uid | head -n 3"
ask "domain user/$uid" "launchctl print user/$uid | head -n 3"
ask "disabled labels" "launchctl print-disabled user/$uid | grep -i ollama"
ask "fleetctl's agent" "launchctl print gui/$uid/dev.fleetctl.ollama"
ask "fleetctl's daemon" "launchctl print system/dev.fleetctl.ollama"
ask "login item of Ollama.app" "launchctl print gui/$uid/com.ollama.ollama | head -n 40"
ask "Homebrew's service, new label" "launchctl print gui/$uid/sh.brew.ollama | head -n 40"
ask "Homebrew's service, old label" "launchctl print gui/$uid/homebrew.mxcl.ollama | head -n 40"
ask "a label that is not loaded" "launchctl print gui/$uid/dev.fleetctl.nothing"
ask "environment of the session" "launchctl print gui/$uid | grep -A 9 'environment = {'"
ask "getenv of an unset variable" "launchctl getenv FLEETCTL_NOTHING"
ask "asuser without root" "launchctl asuser $uid true"
ask "sudo without a password" "sudo -n true"
ask "Ollama processes" "ps -axo pid=,ppid=,uid=,lstart=,command= | grep -i '[o]llama'"
ask "OLLAMA_ variables that ps shows" "ps eww -p \"\$(pgrep -x ollama | head -n 1)\" | tr ' ' '\\n' | grep -c ^OLLAMA_"
ask "GPU" "grep -h 'inference compute' ~/.ollama/logs/*.log | tail -n 3"
ask "settings of Ollama.app" "sqlite3 -readonly ~/Library/Application\\ Support/Ollama/db.sqlite 'select expose, browser, context_length from settings'"
ask "Homebrew" "for brew in /opt/homebrew/bin/brew /usr/local/bin/brew; do [ ! -x \$brew ] || \$brew --version; done; ls '$agents'"
ask "sleep settings" "pmset -g custom"
ask "FileVault" "fdesetup isactive"
ask "/bin/sh" "ls -l /private/var/select/sh; sh --version | head -n 1"
ask "required tools" "for tool in cksum ln readlink sqlite3 plutil lsof netstat; do command -v \$tool; done"
