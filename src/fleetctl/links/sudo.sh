# shellcheck shell=sh
# Becoming root. Only functions.

# become_root NONCE OPTION...: replaces this shell by root's, which prints `root NONCE` and then
# runs what it reads. Where sudo is needed, `ready NONCE` is printed first; OPTIONs are sudo's.
become_root() {
  nonce=$1
  shift
  # shellcheck disable=SC2016
  root_shell='printf "root %s\n" "$1"; exec /bin/sh -s'
  [ "$(id -u)" != 0 ] || exec /bin/sh -c "$root_shell" sh "$nonce"
  printf 'ready %s\n' "$nonce"
  exec sudo "$@" /bin/sh -c "$root_shell" sh "$nonce"
}
