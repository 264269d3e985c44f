"""Certificates and keys for the tests of TLS, made by openssl's program in a folder that is removed at the end."""

import atexit
import os
import re
import shutil
import subprocess
import tempfile

KEYS = tempfile.mkdtemp(prefix="coir-keys.")
atexit.register(shutil.rmtree, KEYS)


def openssl(*arguments, given=b""):
    return subprocess.run(["openssl", *arguments], input=given, capture_output=True, timeout=60)


def certificate(name, *names, kind=("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), issuer=None):
    """Makes a certificate and its key, signed by itself or by `issuer`; returns the two paths."""
    chain, key = (os.path.join(KEYS, f"{name}.{end}") for end in ("crt", "key"))
    if not os.path.exists(chain):
        alternatives = ",".join(("IP:" if re.match(r"[\d.]+$", each) else "DNS:") + each for each in names or (name,))
        signed = ["-CA", issuer[0], "-CAkey", issuer[1]] if issuer else []
        done = openssl("req", "-x509", "-newkey", *kind, "-nodes", "-keyout", key, "-out", chain, "-subj", f"/CN={name}",
                       "-addext", f"subjectAltName={alternatives}", "-days", "300", *signed)
        assert done.returncode == 0, done.stderr
    return chain, key


RSA = ("rsa:2048",)


def expired():
    """A certificate of last year: openssl's ca can date one, in a folder of its own."""
    pair = certificate("expired.test")
    old = os.path.join(KEYS, "old.crt")
    for name, text in (("index.txt", ""), ("serial", "01"), ("ca.cnf", f"""
[ca]
default_ca = it
[it]
dir = {KEYS}
database = $dir/index.txt
serial = $dir/serial
new_certs_dir = $dir
policy = any
default_md = sha256
[any]
commonName = supplied
""")):
        with open(os.path.join(KEYS, name), "w") as file:
            file.write(text)
    wish = openssl("req", "-new", "-key", pair[1], "-subj", "/CN=expired.test")
    done = openssl("ca", "-batch", "-notext", "-config", os.path.join(KEYS, "ca.cnf"), "-selfsign", "-keyfile", pair[1],
                   "-in", "/dev/stdin", "-out", old, "-startdate", "20190101000000Z", "-enddate", "20200101000000Z",
                   given=wish.stdout)
    assert done.returncode == 0, done.stderr
    return old, pair[1]
