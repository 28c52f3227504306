#!/bin/sh
# Replaces itself with the program in the package of this platform, which npm chose by `optionalDependencies`.
# A stub in JavaScript would take Node's own start, ten times as long.
self=$0
if [ -L "$self" ]; then self=$(readlink -f -- "$self"); fi
package=${self%/*}/..
case $(uname -sm) in
    'Linux x86_64') platform=outlast-linux-x64 ;;
    'Linux aarch64' | 'Linux arm64') platform=outlast-linux-arm64 ;;
    'Darwin x86_64') platform=outlast-darwin-x64 ;;
    'Darwin arm64') platform=outlast-darwin-arm64 ;;
    *) platform=none ;;
esac
# Beside this package, or inside it.
for program in "$package/../$platform/bin/outlast" "$package/node_modules/$platform/bin/outlast"; do
    if [ -x "$program" ]; then exec "$program" "$@"; fi
done
echo "outlast: npm installed no program for $(uname -sm). If there is a package $platform, install again" \
    "without --omit=optional; otherwise build it: cargo install --locked outlast" >&2
exit 127
