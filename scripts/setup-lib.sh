# shellcheck shell=bash disable=SC2034  # sourced; its variables are for those who source it
# Shared by scripts/quickstart and scripts/test: installs what is missing, builds, fetches sample pictures. Made to
# be sourced by bash; each step says what it does and does nothing the second time.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stamps="$repository/.cache/stamps"

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'stoker setup: %s\n' "$*" >&2; exit 1; }

build_packages=(g++ cmake ninja-build ccache pkg-config libcli11-dev libfmt-dev nlohmann-json3-dev
  libexpected-dev libtomlplusplus-dev libturbojpeg0-dev libjpeg62-turbo-dev libpng-dev
  libarchive-dev zlib1g-dev libsqlite3-dev libgtest-dev libbenchmark-dev)
test_packages=(python3 python3-jsonschema python3-venv chromium)
lint_packages=(clang-format clang-tidy shellcheck)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "root is needed to install packages, and there is no sudo; run as root: $*"
  fi
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

refresh_package_lists() {
  [ -z "${lists_are_fresh:-}" ] || return 0
  say "refreshing apt's lists"
  as_root apt-get update -qq || die "apt-get update failed; is there a network? Its message stands above"
  lists_are_fresh=yes
}

# need_packages NAME...: installs those that are missing.
need_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt here: taking it that the counterparts of these are installed: $*"
    return
  fi
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  refresh_package_lists
  say "installing with apt: ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >"$repository/.cache/apt.log" 2>&1 ||
    { tail -15 "$repository/.cache/apt.log" >&2; die "apt-get install failed; its last lines stand above"; }
}

# build PRESET [TARGET...]: configures once and builds what changed, by default everything. The compiler's output is
# shown when it fails.
build() {
  local preset=$1 log="$repository/.cache/build-$1.log"
  shift
  if [ ! -f "$repository/build/$preset/build.ninja" ]; then
    say "configuring build/$preset"
    (cd "$repository" && cmake --preset "$preset") >"$log" 2>&1 ||
      { tail -30 "$log" >&2; die "cmake found something missing; its last lines stand above"; }
  fi
  say "building ${*:-all of it} in build/$preset (minutes the first time, seconds after)"
  (cd "$repository" && cmake --build --preset "$preset" ${1:+--target "$@"}) >"$log" 2>&1 ||
    { grep -E -A12 'error|FAILED' "$log" | head -60 >&2; die "the build failed; all of it is in $log"; }
}

# python_environment NAME REQUIREMENT...: .venv with these; remembers what it installed.
python_environment() {
  local stamp="$stamps/venv" wanted="$*"
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -x "$repository/.venv/bin/python" ] && return 0
  if [ ! -x "$repository/.venv/bin/python" ]; then
    say "creating .venv"
    python3 -m venv "$repository/.venv" || die "python3 -m venv failed; on Debian: apt-get install python3-venv"
  fi
  say "installing with pip into .venv: $wanted (minutes the first time)"
  # shellcheck disable=SC2086  # extra arguments are words
  "$repository/.venv/bin/pip" install -q --disable-pip-version-check ${STOKER_PIP_ARGS:-} "$@" \
    >"$repository/.cache/pip.log" 2>&1 ||
    { tail -15 "$repository/.cache/pip.log" >&2; die "pip failed; its last lines stand above. Is there a network?"; }
  mkdir -p "$stamps" && printf '%s' "$wanted" >"$stamp"
}

# sample_pictures: the free JPEGs of Debian's opencv-doc, unpacked but not installed. Sets $pictures.
sample_pictures() {
  pictures="$repository/.cache/opencv-doc"
  [ ! -f "$stamps/opencv-doc" ] || return 0
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    die "the sample images come from a Debian package, and there is no apt here; give a folder of your own with --data"
  fi
  rm -rf "$pictures" "$pictures.new" "$pictures.deb"
  mkdir -p "$pictures.new" "$pictures.deb" "$stamps"
  chmod 755 "$pictures.deb"
  say "downloading the pictures of Debian's opencv-doc (96 MB, unpacked to .cache, not installed)"
  (cd "$pictures.deb" && apt-get download -qq opencv-doc 2>/dev/null) || {
    refresh_package_lists
    (cd "$pictures.deb" && apt-get download -qq opencv-doc) ||
      die "apt-get download opencv-doc failed; is there a network? Or give a folder of your own with --data"
  }
  dpkg-deb --fsys-tarfile "$pictures.deb"/opencv-doc_*.deb |
    tar -x -C "$pictures.new" --wildcards '*.jpg' '*.jpeg' '*.JPG' 2>/dev/null || true
  [ "$(find "$pictures.new" -type f | wc -l)" -ge 100 ] || die "opencv-doc holds fewer pictures than expected"
  mv "$pictures.new" "$pictures"
  rm -rf "$pictures.deb"
  touch "$stamps/opencv-doc"
}

mkdir -p "$repository/.cache"
