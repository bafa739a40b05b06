#!/usr/bin/env bash
# Sets up a farm on this machine, whatever is missing of it, and says what it did. Can be run again at any time.
#
#   scripts/setup.sh [--dev] [all | none | IMAGE…]      images default to all
#
# As root: host packages, a service user that runs the farm, code and virtual environment under /opt/scifarm, `scifarm`
# in /usr/local/bin. As anybody else: a virtual environment in the checkout, `scifarm` in ~/.local/bin; host packages
# must be there, and are named when they are not.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
extras=""
[ "${1:-}" = --dev ] && { extras="[dev]"; shift; }
images=("${@:-all}")

did() { printf '==> %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

debian=(podman crun conmon uidmap fuse-overlayfs slirp4netns catatonit mmdebstrap redis-server libmagic1
        python3 python3-venv util-linux ca-certificates)
fedora=(podman crun conmon shadow-utils fuse-overlayfs slirp4netns catatonit valkey file-libs python3 util-linux)

host_packages() {
  if command -v dpkg-query >/dev/null; then
    local missing=()
    for package in "${debian[@]}"; do
      # Since the change to 64-bit time, libraries such as libmagic1 are called libmagic1t64.
      grep -q '^install ok installed' < <(dpkg-query -W -f '${Status}\n' "$package" "${package}t64" 2>/dev/null) ||
        missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    [ "$(id -u)" = 0 ] || fail "missing on this machine: run \`sudo apt-get install ${missing[*]}\`, then this again"
    did "installing ${missing[*]}"
    # policy-rc.d 101: no service is to be started because its package comes in; the farm starts its own.
    local guard=/usr/sbin/policy-rc.d
    [ -e "$guard" ] || { printf '#!/bin/sh\nexit 101\n' >"$guard"; chmod 755 "$guard"; trap 'rm -f '"$guard" EXIT; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    rm -f "$guard"
  elif command -v dnf >/dev/null; then
    rpm -q "${fedora[@]}" >/dev/null 2>&1 && return
    [ "$(id -u)" = 0 ] || fail "missing on this machine: run \`sudo dnf install ${fedora[*]}\`, then this again"
    did "installing with dnf: ${fedora[*]}"
    dnf install -y -q "${fedora[@]}"
  else
    local absent=()
    for program in podman crun newuidmap catatonit redis-server python3 nsenter unshare setpriv; do
      command -v "$program" >/dev/null || [ -x "/usr/libexec/podman/$program" ] || absent+=("$program")
    done
    [ ${#absent[@]} -eq 0 ] || fail "neither apt nor dnf is here; install by hand what has these programs: ${absent[*]}"
  fi
}

service_user() {
  if ! id scifarm >/dev/null 2>&1; then
    did "making the user scifarm, which runs the farm"
    useradd --create-home --home-dir /var/lib/scifarm --shell /usr/sbin/nologin --comment "scientific execution farm" scifarm
  fi
  for kind in uid gid; do
    grep -q '^scifarm:' "/etc/sub$kind" 2>/dev/null && continue
    did "giving scifarm subordinate ${kind}s"
    # The first range of 65,536 ids that nobody has.
    local start
    start=$(awk -F: '{ end = $2 + $3; if (end > top) top = end } END { print (top > 100000 ? top : 100000) }' "/etc/sub$kind" 2>/dev/null || echo 100000)
    usermod "--add-sub${kind}s" "$start-$((start + 65535))" scifarm
  done
  command -v loginctl >/dev/null && [ -d /run/systemd/system ] && loginctl enable-linger scifarm || true
  local folder=/var/lib/scifarm/.config/containers
  if [ ! -e "$folder/storage.conf" ]; then
    did "choosing podman's overlay driver for scifarm"
    install -d -o scifarm -g scifarm /var/lib/scifarm/.config "$folder"
    printf '[storage]\ndriver = "overlay"\n' >"$folder/storage.conf"
    chown scifarm: "$folder/storage.conf"
  fi
}

overlay_driver() {
  local file="${XDG_CONFIG_HOME:-$HOME/.config}/containers/storage.conf"
  # Only where podman was never used: a store keeps the driver it was made with.
  if [ ! -e "$file" ] && [ ! -d "$HOME/.local/share/containers/storage" ]; then
    did "choosing podman's overlay driver"
    mkdir -p "$(dirname "$file")"
    printf '[storage]\ndriver = "overlay"\n' >"$file"
  fi
}

copy_code() { # to where the service user can read it: a checkout may lie in a home that it cannot enter
  local new=/opt/scifarm/src.new
  rm -rf "$new"
  mkdir -p "$new"
  tar -C "$repository" --exclude=./.git --exclude=./.venv --exclude='__pycache__' --exclude='*.egg-info' --exclude='.*_cache' -cf - . |
    tar -C "$new" --no-same-owner -xf -
  chmod -R u=rwX,go=rX "$new"
  rm -rf "$source"
  mv "$new" "$source"
}

python_with_venv() { # the oldest that will do is 3.11; as root only one that the service user can run
  local places=(python3 python3.14 python3.13 python3.12 python3.11)
  [ "$(id -u)" = 0 ] && places=("${places[@]/#//usr/bin/}")
  for candidate in "${places[@]}"; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  fail "no Python 3.11 or newer with venv was found"
}

virtual_environment() {
  [ -x "$venv/bin/python" ] || { did "making $venv"; "$(python_with_venv)" -m venv "$venv"; }
  local wanted
  wanted=$(sha256sum "$source/pyproject.toml" | cut -c1-64)
  if ! grep -qs "^$wanted " "$venv/installed" || { [ -n "$extras" ] && ! grep -qs 'dev' "$venv/installed"; }; then
    did "installing Python packages into $venv (under a minute)"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --editable "$source$extras"
    [ "$(id -u)" != 0 ] || chmod -R go+rX "$venv"
    echo "$wanted $extras" >"$venv/installed"
  fi
  mkdir -p "$(dirname "$link")"
  [ "$(readlink "$link" 2>/dev/null)" = "$venv/bin/scifarm" ] || { did "linking $link"; ln -sfn "$venv/bin/scifarm" "$link"; }
}

host_packages
if [ "$(id -u)" = 0 ]; then
  source=/opt/scifarm/src venv=/opt/scifarm/venv link=/usr/local/bin/scifarm
  service_user
  copy_code
else
  source=$repository venv=$repository/.venv link=$HOME/.local/bin/scifarm
  overlay_driver
fi
virtual_environment
"$link" policy init
case "${images[0]}" in
  none) ;;
  all) "$link" images build ;;
  *) "$link" images build "${images[@]}" ;;
esac
did "scifarm is $link; \`scifarm doctor\` checks everything, \`scifarm up\` starts the farm"
