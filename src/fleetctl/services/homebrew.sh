# shellcheck shell=sh
# Homebrew's service of a formula: needs launchd.sh.

# ask_brew FORMULA MARKS: version and prefix of the Homebrew that has it, and the log of its service.
ask_brew() {
  for prefix in /opt/homebrew /usr/local "$HOME/homebrew"; do
    [ ! -x "$prefix/bin/brew" ] || [ ! -d "$prefix/opt/$1" ] || {
      "$prefix/bin/brew" --version
      printf '%s\n' "$prefix"
      ask_logs "$2" "$prefix/var/log/$1.log"
      return
    }
  done
}

# brew_service PREFIX VERB FORMULA
brew_service() {
  HOMEBREW_NO_AUTO_UPDATE=1 HOMEBREW_NO_ENV_HINTS=1 "$1/bin/brew" services "$2" "$3"
}
