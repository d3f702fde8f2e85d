# shellcheck shell=sh
# Allowing a key to log in, as ssh-copy-id does. Only functions.

# authorize_key KEY LINE: appends LINE to ~/.ssh/authorized_keys unless KEY is in it. The last line
# of the output is `added`, `present` or an error. New files are private by the script's umask;
# existing ones keep their mode.
authorize_key() {
  exec 2>&1
  cd || exit
  [ -d .ssh ] || mkdir .ssh || exit
  file=.ssh/authorized_keys
  [ ! -e $file ] || ! grep -v '^[[:space:]]*#' $file | grep -qF -- "$1" || { echo present; exit; }
  # end an unfinished last line, or the key would become a part of it
  [ ! -s $file ] || [ -z "$(tail -c 1 $file)" ] || echo >>$file || exit
  printf '%s\n' "$2" >>$file || exit
  ! command -v restorecon >/dev/null 2>&1 || restorecon -F .ssh $file
  echo added
}
