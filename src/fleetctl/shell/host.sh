# shellcheck shell=sh disable=SC2154
# What every machine is asked.

ask_host() {
  uname -snrm
  id
  printf '%s\n' "$HOME"
  section release; [ ! -r /etc/os-release ] || cat /etc/os-release
  section traits
  [ ! -e /etc/NIXOS ] || echo nixos
  [ ! -e /.dockerenv ] && [ ! -e /run/.containerenv ] || echo container
}

# ask_programs NAME FOLDER...: the executables of that name.
ask_programs() {
  name=$1
  shift
  for folder do [ ! -x "$folder/$name" ] || printf '%s\n' "$folder/$name"; done
}

ask_addresses() { ip -o addr 2>/dev/null || ifconfig -a; }

# ask_servers NAME: processes `NAME serve`. Shell built-ins for most processes: a fork for each of
# hundreds would take a second.
ask_servers() {
  if [ "$system" = Darwin ]; then
    ps -axo pid=,uid=,command= | while read -r pid uid command; do
      case $command in (*"$1 serve") printf '%s\t%s\t\t%s\n' "$pid" "$uid" "$command";; esac
    done
    return
  fi
  server=$1
  for at in /proc/[0-9]*; do
    { read -r name <"$at/comm"; } 2>/dev/null || continue
    case $name in ("$server"*) ;; (*) continue;; esac
    command=$(tr '\000' ' ' <"$at/cmdline") 2>/dev/null || continue
    case $command in (*" serve "*) ;; (*) continue;; esac
    unit=$(sed -n 's/.*\///; $p' "$at/cgroup")
    # shellcheck disable=SC2046,SC2012
    set -- $(ls -ldn "$at")
    printf '%s\t%s\t%s\t%s\n' "${at#/proc/}" "$3" "$unit" "$command"
  done
}

# ask_ports CODE STATE: the local port of every TCP connection in that state. CODE is the kernel's
# name of it in the tables of Linux; netstat prints STATE elsewhere.
ask_ports() {
  for table in /proc/net/tcp /proc/net/tcp6; do
    [ ! -r $table ] || while read -r _ local _ state _; do
      [ "$state" != "$1" ] || echo "0x${local##*:}"
    done <$table
  done
  [ -r /proc/net/tcp ] ||
    netstat -an -p tcp | sed -n "s/^tcp[46 ]*[0-9]* *[0-9]* *[^ ]*\\.\\([0-9]*\\) .*$2.*/\\1/p"
}

# How sudo would let this user in; only asked, nothing is done by it.
ask_sudo() {
  if [ "$(id -u)" = 0 ]; then echo root
  elif ! command -v sudo >/dev/null; then echo absent
  elif sudo -n true 2>/dev/null; then echo free
  else echo refused; fi
}
