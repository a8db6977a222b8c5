#!/bin/sh
# Installs `trainer`, and `burnish` as another name of it:
#
#     curl -fsSL ADDRESS/releases/latest/download/install.sh | sh
#
# BURNISH_VERSION      version, such as 0.2.0; default: the latest
# BURNISH_INSTALL_DIR  folder of the programs; default: ~/.local/bin
# BURNISH_RELEASES     address with the releases, or a folder with the archives
#
# The archive is compared with its checksum and its program is started once before anything in the folder is replaced.
set -eu

# The release workflow writes the address here.
RELEASES="@RELEASES@"

fail() {
    echo "error: $*" >&2
    exit 1
}

# Prints the name that the archives give to this platform.
target() {
    case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo x86_64-unknown-linux-gnu ;;
    Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-gnu ;;
    Darwin-arm64) echo aarch64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m), only for Linux on x86_64 and aarch64 and macOS on arm64:" \
        "build it with Rust (docs/install.md)" ;;
    esac
}

# Writes a file of the release into a folder.
fetch() { # NAME FOLDER
    case "$releases" in
    http://* | https://*)
        if [ "$version" = latest ]; then
            address="$releases/latest/download/$1"
        else
            address="$releases/download/v$version/$1"
        fi
        if command -v curl >/dev/null; then
            curl -fsSL --retry 3 "$address" -o "$2/$1" || fail "$address cannot be downloaded"
        elif command -v wget >/dev/null; then
            wget -q "$address" -O "$2/$1" || fail "$address cannot be downloaded"
        else
            fail "neither curl nor wget is installed"
        fi
        ;;
    *) cp "$releases/$1" "$2/$1" || fail "$releases is a folder without $1" ;;
    esac
}

checksum() { # FILE
    if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

main() {
    version=${BURNISH_VERSION:-latest}
    releases=${BURNISH_RELEASES:-$RELEASES}
    case "$releases" in
    @*) fail "this copy of install.sh has no address: take the one of a release, or set BURNISH_RELEASES to an address or a folder" ;;
    esac
    command -v xz >/dev/null || fail "xz is not installed: apt-get install xz-utils, dnf install xz, or brew install xz"
    folder=${BURNISH_INSTALL_DIR:-$HOME/.local/bin}
    name="burnish-$(target)"
    mkdir -p "$folder"
    # In the same folder, so that the last step is a rename, which happens in full or not at all.
    new=$(mktemp -d "$folder/.burnish-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    trap 'exit 1' HUP INT TERM

    fetch "$name.tar.xz" "$new"
    fetch "$name.tar.xz.sha256" "$new"
    expected=$(cut -d ' ' -f 1 "$new/$name.tar.xz.sha256")
    found=$(checksum "$new/$name.tar.xz")
    [ "$expected" = "$found" ] || fail "$name.tar.xz has the checksum $found in place of $expected; nothing was installed"
    tar -xJf "$new/$name.tar.xz" -C "$new"
    shown=$("$new/$name/trainer" --version) || fail "the program does not start on this machine; nothing was installed"
    ln -s trainer "$new/burnish"
    mv -f "$new/$name/trainer" "$folder/trainer"
    mv -f "$new/burnish" "$folder/burnish"
    echo "$shown is in $folder"
    case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "PATH lacks this folder: export PATH=\"$folder:\$PATH\"" ;;
    esac
}

# The last line starts everything, so that half of a download does nothing.
main
