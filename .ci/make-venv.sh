#!/bin/sh
# Makes a virtual environment with pip: make-venv.sh PYTHON FOLDER
# Debian's python3 comes without the venv module's pip; where that is so, this installs python3-venv (root) or says how.
set -eu
python=$1
folder=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "jlkern needs Python 3.10 or newer; $python is $("$python" -V 2>&1). Name another: make PYTHON=python3.12" >&2
    exit 1
fi

if "$python" -m venv "$folder" >/dev/null 2>&1 && "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi
rm -rf "$folder"

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "$python cannot make virtual environments yet: installing Debian's python3-venv"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    "$python" -m venv "$folder"
    exit 0
fi

echo "$python cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python3-venv, then again." >&2
exit 1
