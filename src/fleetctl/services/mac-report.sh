# What only a real Mac can tell: each question of docs/macos.md that can be asked by looking alone.
# shellcheck shell=sh disable=SC2009
uid=$(id -u)
ask() {
  printf '\n## %s\n$ %s\n' "$1" "$2"
  sh -c "$2" 2>&1 | head -n 60
  printf '(exit %s)\n' "$(sh -c "$2" >/dev/null 2>&1; echo $?)"
}
agents=$HOME/Library/LaunchAgents
ask "which macOS" "sw_vers; uname -a"
ask "who sits at the screen" "stat -f %Su /dev/console"
ask "which session this is" "launchctl managername"
ask "whether gui/$uid is there" "launchctl print gui/$uid | head -n 3"
ask "whether user/$uid is there" "launchctl print user/$uid | head -n 3"
ask "what is disabled" "launchctl print-disabled user/$uid | grep -i ollama"
ask "our agent" "launchctl print gui/$uid/dev.fleetctl.ollama"
ask "our daemon" "launchctl print system/dev.fleetctl.ollama"
ask "the app at login" "launchctl print gui/$uid/com.ollama.ollama | head -n 40"
ask "Homebrew's service, new name" "launchctl print gui/$uid/sh.brew.ollama | head -n 40"
ask "Homebrew's service, old name" "launchctl print gui/$uid/homebrew.mxcl.ollama | head -n 40"
ask "a job that is not there" "launchctl print gui/$uid/dev.fleetctl.nothing"
ask "the environment of the session" "launchctl print gui/$uid | grep -A 9 'environment = {'"
ask "a variable that is not set" "launchctl getenv FLEETCTL_NOTHING"
ask "asuser without root" "launchctl asuser $uid true"
ask "sudo without a password" "sudo -n true"
ask "the servers" "ps -axo pid=,ppid=,uid=,lstart=,command= | grep -i '[o]llama'"
ask "whether ps shows an environment" "ps eww -p \"\$(pgrep -x ollama | head -n 1)\" | tr ' ' '\\n' | grep -c ^OLLAMA_"
ask "the GPU" "grep -h 'inference compute' ~/.ollama/logs/*.log | tail -n 3"
ask "the app's settings" "sqlite3 -readonly ~/Library/Application\\ Support/Ollama/db.sqlite 'select expose, browser, context_length from settings'"
ask "Homebrew" "for brew in /opt/homebrew/bin/brew /usr/local/bin/brew; do [ ! -x \$brew ] || \$brew --version; done; ls '$agents'"
ask "sleep" "pmset -g custom"
ask "FileVault" "fdesetup isactive"
ask "the shell behind sh" "ls -l /private/var/select/sh; sh --version | head -n 1"
ask "tools that must be there" "for tool in cksum ln readlink sqlite3 plutil lsof netstat; do command -v \$tool; done"
