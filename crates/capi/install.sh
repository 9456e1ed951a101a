#!/bin/sh
# Builds the C library and installs it: header, shared and static library, pkg-config file.
#
#     crates/capi/install.sh [--prefix DIR] [--libdir DIR] [--includedir DIR] [--destdir DIR] [--library both|shared|static] [--from DIR]
#
# --prefix      where it goes; default /usr/local
# --libdir      default PREFIX/lib
# --includedir  default PREFIX/include
# --destdir     put before all of these while files are copied, and written nowhere: for packages
# --library     which libraries; default both
# --from        folder that has librelayout_capi already; without it, it is built in release mode
#
# Needs a POSIX shell and Rust. Linux, the BSDs and macOS.
set -eu

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 2
}

crate=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
prefix=/usr/local libdir='' includedir='' destdir=${DESTDIR-} library=both from=''
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
        --prefix) prefix=$2 ;;
        --libdir) libdir=$2 ;;
        --includedir) includedir=$2 ;;
        --destdir) destdir=$2 ;;
        --library) library=$2 ;;
        --from) from=$2 ;;
        *) fail "there is no option $1" ;;
    esac
    shift 2
done
case $library in both | shared | static) ;; *) fail "--library is both, shared or static, not $library" ;; esac
: "${libdir:=$prefix/lib}" "${includedir:=$prefix/include}"
for folder in "$prefix" "$libdir" "$includedir"; do
    case $folder in /*) ;; *) fail "$folder is not an absolute path" ;; esac
done

if [ -z "$from" ]; then
    (cd "$crate" && cargo build --release --package relayout-capi)
    target=$(cd "$crate" && cargo metadata --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
    from=$target/release
fi

# The library has the name that build.rs gave it: before 1.0, a minor version may break callers.
version=$(sed -n 's/^#define RELAYOUT_VERSION "\(.*\)"$/\1/p' "$crate/include/relayout.h")
major=${version%%.*} minor=${version#*.} minor=${minor%%.*}
if [ "$major" = 0 ]; then abi=0.$minor; else abi=$major; fi
case $(uname -s) in
    Darwin) built=librelayout_capi.dylib linked=librelayout.dylib loaded=librelayout.$abi.dylib file=librelayout.$version.dylib ;;
    *) built=librelayout_capi.so linked=librelayout.so loaded=librelayout.so.$abi file=librelayout.so.$version ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What Rust's standard library needs of the system; a static library does not say it.
: >"$work/empty.rs"
"${RUSTC:-rustc}" --crate-type staticlib --print native-static-libs -o "$work/empty.a" "$work/empty.rs" 2>"$work/said" ||
    fail "rustc can't say what static libraries need: $(cat "$work/said")"
private=$(sed -n 's/^note: native-static-libs: //p' "$work/said")
# A `|` in a path would end the pattern of sed.
sed -e "s|@prefix@|$prefix|" -e "s|@libdir@|$libdir|" -e "s|@includedir@|$includedir|" -e "s|@version@|$version|" \
    -e "s|@private@|$private|" "$crate/relayout.pc.in" >"$work/relayout.pc"

mkdir -p "$destdir$libdir/pkgconfig" "$destdir$includedir"
if [ "$library" != static ]; then
    # A program that runs keeps the file that it has loaded.
    rm -f "$destdir$libdir/$file"
    cp "$from/$built" "$destdir$libdir/$file"
    chmod 755 "$destdir$libdir/$file"
    ln -sf "$file" "$destdir$libdir/$loaded"
    ln -sf "$file" "$destdir$libdir/$linked"
fi
if [ "$library" != shared ]; then
    cp "$from/librelayout_capi.a" "$destdir$libdir/librelayout.a"
    chmod 644 "$destdir$libdir/librelayout.a"
fi
cp "$crate/include/relayout.h" "$destdir$includedir/relayout.h"
cp "$work/relayout.pc" "$destdir$libdir/pkgconfig/relayout.pc"
chmod 644 "$destdir$includedir/relayout.h" "$destdir$libdir/pkgconfig/relayout.pc"
printf 'relayout %s is installed in %s and %s\n' "$version" "$destdir$libdir" "$destdir$includedir"
